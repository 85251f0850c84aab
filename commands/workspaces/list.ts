import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { explainWorkspaceLimits } from '../../src/cli/find/explain-workspace-limits.ts'
import { defaultWorkspace } from '../../src/cli/settings/profile.ts'
import { workspaces } from '../../src/contract/workspaces.ts'

export default class WorkspacesList extends WbCommand {
  static override summary = 'list workspaces'
  static override examples = ['wb workspaces list', 'wb workspaces list --json | jq -r ".[].name"']
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(WorkspacesList)
    const items = this.client.items(workspaces.list, {})
    const { rows, total } = await this.takeRows(items, flags.limit)
    const limitNote = rows.length === 0 ? await explainWorkspaceLimits(this.client, []) : undefined
    const inUse = defaultWorkspace(this.profile)
    this.output.list(rows, {
      columns: {
        id: { value: row => row.workspaceId, pipeOnly: true },
        name: { value: row => row.name, format: 'flexible' },
        kind: { value: row => row.kind },
        created: { value: row => row.createdAt, format: 'time' },
        default: { value: row => (row.workspaceId === inUse ? 'yes' : '') },
      },
      empty: limitNote ? [limitNote] : ['no workspaces yet; create one:', '  wb workspaces create demo'],
      total,
    })
  }
}
