import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { boundTo } from '../../src/cli/find/reach.ts'
import { defaultWorkspace } from '../../src/cli/settings/profile.ts'
import { workspaces } from '../../src/contract/workspaces.ts'

export default class WorkspacesList extends WbCommand {
  static override summary = 'list workspaces'
  static override examples = ['wb workspaces list', 'wb workspaces list --json | jq -r ".[].name"']
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(WorkspacesList)
    const items = this.client.items(workspaces.list, {})
    const { rows, total } = await this.take(items, flags.limit)
    const bound = rows.length === 0 ? await boundTo(this.client, []) : undefined
    const inUse = defaultWorkspace(this.profile)
    this.output.list(rows, {
      columns: {
        id: { of: row => row.workspaceId, piped: true },
        name: { of: row => row.name, as: 'free' },
        kind: { of: row => row.kind },
        created: { of: row => row.createdAt, as: 'time' },
        default: { of: row => (row.workspaceId === inUse ? 'yes' : '') },
      },
      empty: bound ? [bound] : ['no workspaces yet; make the first one:', '  wb workspaces create demo'],
      total,
    })
  }
}
