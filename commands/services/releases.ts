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
    const { rows, total } = await this.take(items, flags.limit)
    this.output.list(rows, {
      columns: {
        id: { of: row => row.releaseId },
        secret: { of: row => row.ref, as: 'free' },
        host: { of: row => row.host },
        workspace: { of: row => row.workspaceId },
        created: { of: row => row.createdAt, as: 'time' },
      },
      empty: ['no releases; the configuration may contain others', '  wb services allow REF --host HOST'],
      total,
    })
  }
}
