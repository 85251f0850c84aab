import { serviceChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { yesFlag } from '../../src/cli/command/flags.ts'
import { lookupTypeFlag } from '../../src/cli/services/flags.ts'
import { ServiceCalls } from '../../src/cli/services/service-calls.ts'
import { explainServiceInUse } from '../../src/cli/services/service-in-use.ts'
import { serviceTypeDetails } from '../../src/cli/services/service-types.ts'

export default class ServicesDelete extends WbCommand {
  static override summary = 'delete a service that is not in use'
  static override examples = [
    'wb services delete recursive-char-1000',
    'wb services delete recursive-char-1000 --type chunking --yes',
  ]
  static override args = { service: existingArg(serviceChoices, 'name or ID') }
  static override flags = { type: lookupTypeFlag, yes: yesFlag }

  async run() {
    const { args, flags } = await this.parse(ServicesDelete)
    const { workspaceId } = await this.workspace()
    const services = new ServiceCalls(this.client, workspaceId)
    const service = await services.find(args.service, flags.type, this.resolveContext)
    const { name } = service.record
    const target = `${serviceTypeDetails[service.type].noun} ${name}`
    await this.confirmDeletion(target, name, flags.yes)
    await services.delete(service).catch(async error => {
      throw await explainServiceInUse(error, this.client, { workspaceId, serviceId: service.id })
    })
    this.output.reportDeleted(service.id, `deleted ${target}`)
  }
}
