import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { keyColumns } from '../../src/cli/fields/key.ts'
import { apiKeys } from '../../src/contract/keys.ts'

export default class KeysList extends WbCommand {
  static override summary = 'list the API keys of a workspace'
  static override examples = ['wb keys list', 'wb keys list --json | jq -r ".[].prefix"']
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(KeysList)
    const { workspaceId, name } = await this.workspace()
    const items = this.client.items(apiKeys.list, {
      params: { workspaceId },
    })
    const { rows, total } = await this.takeRows(items, flags.limit)
    this.output.list(rows, {
      columns: keyColumns(rows, this.io.clock.now()),
      empty: [`no keys in workspace ${name} yet; create one:`, '  wb keys create ci --role viewer'],
      total,
    })
  }
}
