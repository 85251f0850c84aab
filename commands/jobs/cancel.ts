import { unfinishedJobChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { findJob } from '../../src/cli/find/job.ts'
import { jobs } from '../../src/contract/jobs.ts'

export default class JobsCancel extends WbCommand {
  static override summary = 'cancel a job and mark its document as failed'
  static override description =
    'Marks the job and its document as failed. A job that has already ended does not change.'
  static override examples = [
    'wb jobs cancel $(wb jobs list --limit 1 | cut -f1)',
    'wb jobs cancel $(wb jobs list --limit 1 | cut -f1) --json',
  ]
  static override args = { job: existingArg(unfinishedJobChoices, 'job ID') }

  async run() {
    const { args } = await this.parse(JobsCancel)
    const { workspaceId, jobId } = await this.waitFor('loading', findJob(this.resolveContext, args.job))
    const job = await this.client.call(jobs.cancel, { params: { workspaceId, jobId } })
    if (this.output.json) this.output.value(job)
    else if (job.errorMessage === 'cancelled') this.output.note(`  ✓ cancelled ${jobId}`)
    else this.output.note(`  ${jobId} has already ended: ${job.status}`)
  }
}
