import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { sentenceProgressLines } from '../../src/cli/fields/resources.ts'
import { statusTone } from '../../src/cli/fields/status-tone.ts'
import { formatJobProgress, shortIdChars } from '../../src/cli/find/job.ts'
import { lookUpJobNames } from '../../src/cli/find/job-names.ts'
import { listKnowledgeBases } from '../../src/cli/find/resolve.ts'
import { jobs } from '../../src/contract/jobs.ts'

export default class JobsList extends WbCommand {
  static override summary = 'list the jobs of a workspace, newest first'
  static override description =
    'In a terminal, IDs are shortened to their first characters, which other commands accept. Also prints the progress of sentence vectors, which are computed in the background after an ingest. They are not jobs: with --json, and in a pipe, stdout contains only jobs.'
  static override examples = ['wb jobs list', 'wb jobs list --limit 10 --json']
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(JobsList)
    const { workspaceId, name } = await this.workspace()
    const request = { params: { workspaceId } }
    const { rows, total } = await this.takeRows(this.client.items(jobs.list, request), flags.limit)
    if (this.output.json) return this.output.value(rows)
    const names = await this.waitFor('reading', lookUpJobNames(this.client, rows))
    this.output.list(rows, {
      columns: {
        id: {
          value: row => (this.output.interactive ? row.jobId.slice(0, shortIdChars) : row.jobId),
        },
        kind: { value: row => row.kind },
        status: { value: row => row.status, tone: row => statusTone(row.status) },
        chunks: { value: formatJobProgress },
        error: { value: row => row.errorMessage, format: 'flexible' },
        'document id': { value: row => row.documentId, pipeOnly: true },
        updated: { value: row => row.updatedAt, format: 'time' },
        document: { value: row => names.get(row).document, format: 'flexible' },
        'knowledge base': { value: row => names.get(row).base },
      },
      empty: [`no jobs in ${name} yet; start one:`, '  wb kb ingest handbook ./my-folder --async'],
      total,
    })
    const bases = await this.waitFor('reading', listKnowledgeBases(this.client, workspaceId))
    for (const line of sentenceProgressLines(bases)) this.output.note(line)
  }
}
