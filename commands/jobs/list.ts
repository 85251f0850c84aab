import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { progressOf } from '../../src/cli/find/job.ts'
import { jobPlaces } from '../../src/cli/jobs/job-places.ts'
import { jobs } from '../../src/contract/jobs.ts'

export default class JobsList extends WbCommand {
  static override summary = 'list the jobs of a workspace, the newest first'
  static override examples = ['wb jobs list', 'wb jobs list --limit 10 --json']
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(JobsList)
    const { workspaceId, name } = await this.workspace()
    const request = { params: { workspaceId } }
    const { rows, total } = await this.take(this.client.items(jobs.list, request), flags.limit)
    if (this.output.json) return this.output.value(rows)
    const places = await this.waitFor('reading', jobPlaces(this.client, rows))
    this.output.list(rows, {
      columns: {
        id: { of: row => row.jobId },
        status: { of: row => row.status, isBad: row => row.status === 'failed' },
        chunks: { of: progressOf },
        error: { of: row => row.errorMessage, as: 'free' },
        'document id': { of: row => row.documentId, piped: true },
        updated: { of: row => row.updatedAt, as: 'time' },
        document: { of: row => places.of(row).document, as: 'free' },
        'knowledge base': { of: row => places.of(row).base },
      },
      empty: [
        `no jobs in ${name} yet; leave some work to one:`,
        '  wb kb ingest handbook ./my-folder --async',
      ],
      total,
    })
  }
}
