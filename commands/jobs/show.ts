import { WbCommand } from '../../src/cli/command/command.ts'
import { findJob, jobArg, jobFields } from '../../src/cli/find/job.ts'
import { lookUpJobNames } from '../../src/cli/find/job-names.ts'

export default class JobsShow extends WbCommand {
  static override summary = 'show a job'
  static override examples = ['wb jobs show', 'wb jobs show $(wb jobs list --limit 1 | cut -f1) --json']
  static override args = { job: jobArg }

  async run() {
    const { args } = await this.parse(JobsShow)
    const job = await this.waitFor('loading', findJob(this.resolveContext, args.job))
    if (this.output.json) return this.output.value(job)
    const names = await lookUpJobNames(this.client, [job])
    this.output.fields(job, jobFields(job, names.get(job)))
    if (job.status === 'running') this.output.suggest(`wb jobs watch ${job.jobId}`)
  }
}
