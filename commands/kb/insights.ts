import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { yesFlag } from '../../src/cli/command/flags.ts'
import { printInsights } from '../../src/cli/insights/print-insights.ts'
import { parsePastTime } from '../../src/cli/terminal/duration.ts'
import { kb } from '../../src/contract/knowledge.ts'
import { limits } from '../../src/contract/limits.ts'

export default class KbInsights extends WbCommand {
  static override summary = 'show unanswered, repeated and slow questions'
  static override description =
    'Summarizes the searches of a knowledge base whose query log is on (wb kb update NAME --query-log on).'
  static override examples = [
    'wb kb insights handbook --since 7d',
    'wb kb insights handbook --json | jq .unanswered',
    'wb kb insights handbook --clear --yes',
  ]
  static override args = { name: Args.string({ description: 'name or ID [the only knowledge base]' }) }
  static override flags = {
    since: Flags.string({
      summary: 'read only searches since this time: 1h, 7d, 2026-01-31',
      helpValue: 'WHEN',
      default: '7d',
    }),
    limit: Flags.integer({
      min: 1,
      max: limits.insightQuestionsMax,
      default: limits.insightQuestionsDefault,
      summary: 'maximum number of questions in each list',
    }),
    clear: Flags.boolean({ summary: 'delete all recorded searches of the knowledge base' }),
    yes: yesFlag,
  }

  async run() {
    const { args, flags } = await this.parse(KbInsights)
    const since = parsePastTime('--since', flags.since, this.io.clock.now())
    const { workspaceId, knowledgeBaseId, name } = await this.knowledgeBase(args.name)
    const params = { workspaceId, knowledgeBaseId }
    if (flags.clear) {
      const target = `the recorded searches of knowledge base ${name}`
      await this.confirmDeletion(target, name, flags.yes)
      await this.waitFor('deleting', this.client.call(kb.clearInsights, { params }))
      this.output.reportDeleted(knowledgeBaseId, `deleted ${target}`)
      return
    }
    const query = { since, limit: flags.limit }
    const insights = await this.waitFor('reading', this.client.call(kb.insights, { params, query }))
    printInsights(this.output, name, insights)
  }
}
