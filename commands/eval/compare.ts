import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { UsageError } from '../../src/cli/errors.ts'
import { EvalCommand, evalFlags } from '../../src/cli/eval/eval-command.ts'
import { loadResult } from '../../src/cli/eval/load-questions.ts'
import { measureSettings } from '../../src/cli/eval/measure-settings.ts'
import { printComparison } from '../../src/cli/eval/print-comparison.ts'
import { parseSettings } from '../../src/cli/eval/settings.ts'
import type { EvalResult } from '../../src/evaluation/eval-result.ts'

const description =
  'settings, such as default, mode=lexical or lexical-weight=0.3,rerank; or a .json file with a result'

export default class EvalCompare extends EvalCommand {
  static override summary = 'compare two settings or two saved results'
  static override description =
    'Prints the differences with 95 % confidence intervals, and the p values of a paired randomization test. A .json file is a lockfile, or the output of wb eval run --json.'
  static override examples = [
    'wb eval compare default rerank --questions questions.yaml --kb handbook',
    'wb eval compare mode=lexical lexical-weight=0.3 --questions questions.yaml --kb handbook',
    'wb eval compare before.json after.json',
  ]
  static override args = {
    a: Args.string({ required: true, ignoreStdin: true, description }),
    b: Args.string({
      required: true,
      ignoreStdin: true,
      description: 'settings or a .json file to compare with',
    }),
  }
  static override flags = {
    ...evalFlags,
    questions: Flags.string({
      summary: 'questions to measure settings with, as in wb eval run',
      helpValue: 'FILE',
    }),
    limit: Flags.integer({ default: 5, min: 0, summary: 'maximum number of questions to print' }),
  }

  async run() {
    const { args, flags } = await this.parse(EvalCompare)
    const sides = [args.a, args.b].map(text =>
      text.endsWith('.json') ? loadResult(this.io.cwd, text) : { settings: parseSettings(text) },
    )
    const isMeasured = sides.some(side => !('metrics' in side))
    if (isMeasured && flags.questions === undefined)
      throw new UsageError('--questions is missing, and settings are measured with questions', [
        `${this.commandName} ${args.a} ${args.b} --questions FILE`,
      ])
    const context = isMeasured ? await this.openContext(flags.questions!, flags) : undefined
    const results: EvalResult[] = []
    for (const side of sides)
      results.push('metrics' in side ? side : await measureSettings(context!, side.settings))
    printComparison(this.output, results[0]!, results[1]!, flags.limit)
  }
}
