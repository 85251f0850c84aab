import { WbCommand } from '../../src/cli/command/command.ts'
import { exit } from '../../src/cli/command/exit.ts'
import { findJob, jobArg, jobFields } from '../../src/cli/find/job.ts'
import { lookUpJobNames } from '../../src/cli/find/job-names.ts'
import { watchJob } from '../../src/cli/jobs/watch-job.ts'

export default class JobsWatch extends WbCommand {
  static override summary = 'show the progress of a job until it ends'
  static override examples = ['wb jobs watch', 'wb jobs watch $(wb jobs list --limit 1 | cut -f1) --json']
  static override args = { job: jobArg }

  protected override readonly finishesBackgroundWork = true

  async run() {
    const { args } = await this.parse(JobsWatch)
    const { client, signal, progress } = this
    const job = await this.waitFor('loading', findJob(this.resolveContext, args.job))
    const last = await watchJob(client, job, signal, ({ status, processed, total }) =>
      progress.step({ label: status, done: processed, total: total ?? 0, unit: 'chunks' }),
    )
    progress.end()
    if (last.status === 'failed') this.exitCode = exit.failed
    if (this.output.json) return this.output.value(last)
    const names = await lookUpJobNames(client, [last])
    this.output.fields(last, jobFields(last, names.get(last)))
  }
}
