import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { progressOf } from '../../src/cli/find/job.ts'
import { lookUpJobNames } from '../../src/cli/jobs/job-names.ts'
import { statusTone } from '../../src/cli/shown/status-tone.ts'
import { jobs } from '../../src/contract/jobs.ts'

export default class JobsList extends WbCommand {
  static override summary = 'list the jobs of a workspace, newest first'
  static override examples = ['wb jobs list', 'wb jobs list --limit 10 --json']
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(JobsList)
    const { workspaceId, name } = await this.workspace()
    const request = { params: { workspaceId } }
    const { rows, total } = await this.take(this.client.items(jobs.list, request), flags.limit)
    if (this.output.json) return this.output.value(rows)
    const places = await this.waitFor('reading', lookUpJobNames(this.client, rows))
    this.output.list(rows, {
      columns: {
        id: { of: row => row.jobId },
        status: { of: row => row.status, tone: row => statusTone(row.status) },
        chunks: { of: progressOf },
        error: { of: row => row.errorMessage, as: 'free' },
        'document id': { of: row => row.documentId, piped: true },
        updated: { of: row => row.updatedAt, as: 'time' },
        document: { of: row => places.of(row).document, as: 'free' },
        'knowledge base': { of: row => places.of(row).base },
      },
      empty: [`no jobs in ${name} yet; start one:`, '  wb kb ingest handbook ./my-folder --async'],
      total,
    })
  }
}
