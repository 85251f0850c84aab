import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { typeFlag } from '../../src/cli/services/flags.ts'
import { ServiceCalls } from '../../src/cli/services/service-calls.ts'
import { serviceColumns } from '../../src/cli/services/service-fields.ts'
import { serviceTypes } from '../../src/cli/services/service-types.ts'

export default class ServicesList extends WbCommand {
  static override summary = 'list the services of a workspace'
  static override examples = ['wb services list', 'wb services list --type embedding --json']
  static override flags = { type: typeFlag, limit: limitFlag }

  async run() {
    const { flags } = await this.parse(ServicesList)
    const { workspaceId, name } = await this.workspace()
    const types = flags.type === undefined ? serviceTypes : [flags.type]
    const services = new ServiceCalls(this.client, workspaceId)
    const { rows, total } = await this.takeRows(services.listAll(types), flags.limit)
    if (this.output.json) return this.output.value(rows.map(({ record }) => record))
    this.output.list(rows, {
      columns: serviceColumns,
      empty: [
        `no ${flags.type ?? ''} services in workspace ${name}; create one:`.replace('  ', ' '),
        `  wb services create${flags.type ? ` --type ${flags.type}` : ''}`,
      ],
      total,
    })
  }
}
