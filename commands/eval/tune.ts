import * as Flags from '@oclif/core/flags'
import { EvalCommand, evalFlags, questionsArg, rankingFlags } from '../../src/cli/eval/eval-command.ts'
import { printTunedWeight, tuneWeight } from '../../src/cli/eval/tune-weight.ts'
import { metricNames } from '../../src/evaluation/metrics.ts'

export default class EvalTune extends EvalCommand {
  static override summary = 'test whether another lexical weight is better'
  static override description =
    'Tries lexical weights from 0 to 1, and chooses one by cross-validation. All metrics are held out: each question is measured with a weight that was chosen on other questions.'
  static override examples = [
    'wb eval tune questions.yaml --kb handbook',
    'wb eval tune questions.yaml --kb handbook --metric mrr@10 --json',
  ]
  static override args = { questions: questionsArg }
  static override flags = {
    ...evalFlags,
    metric: Flags.option({ options: metricNames, default: 'ndcg@10' })({ summary: 'metric to improve' }),
    folds: Flags.integer({ default: 5, min: 2, max: 20, summary: 'number of folds of the questions' }),
    rerank: rankingFlags.rerank,
  }

  async run() {
    const { args, flags } = await this.parse(EvalTune)
    const context = await this.openContext(args.questions, flags)
    printTunedWeight(this.output, await tuneWeight(context, flags))
  }
}
