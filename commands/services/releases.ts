import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { secretReleases } from '../../src/contract/releases.ts'

export default class ServicesReleases extends WbCommand {
  static override summary = 'list the secrets released with wb services allow'
  static override examples = [
    'wb services releases --as-operator',
    'wb services releases --as-operator --json',
  ]
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(ServicesReleases)
    const items = this.client.items(secretReleases.list, {})
    const { rows, total } = await this.takeRows(items, flags.limit)
    this.output.list(rows, {
      columns: {
        id: { value: row => row.releaseId },
        secret: { value: row => row.ref, format: 'flexible' },
        host: { value: row => row.host },
        workspace: { value: row => row.workspaceId },
        created: { value: row => row.createdAt, format: 'time' },
      },
      empty: ['no releases; the configuration may contain others', '  wb services allow REF --host HOST'],
      total,
    })
  }
}
