import * as Flags from '@oclif/core/flags'
import { shellWord } from '../../src/base/shell-word.ts'
import { checkGate } from '../../src/cli/eval/check-gate.ts'
import {
  EvalCommand,
  evalFlags,
  questionsArg,
  rankingFlags,
  settingsOf,
} from '../../src/cli/eval/eval-command.ts'
import { loadResult } from '../../src/cli/eval/load-questions.ts'
import { measureSettings } from '../../src/cli/eval/measure-settings.ts'
import { parseTolerance } from '../../src/cli/eval/parse-tolerance.ts'
import { printResult } from '../../src/cli/eval/print-result.ts'
import { resolveTypedPath } from '../../src/cli/resolve-typed-path.ts'
import { writeResult } from '../../src/evaluation/result-file.ts'

export default class EvalRun extends EvalCommand {
  static override summary = 'measure how well searches find the answers'
  static override description =
    'Searches for each question, and prints nDCG, recall, reciprocal rank and average precision with 95 % confidence intervals. With --gate, the exit status is 1 if a metric is lower than in the lockfile.'
  static override examples = [
    'wb eval run questions.yaml --kb handbook',
    'wb eval run questions.yaml --kb handbook --update',
    'wb eval run questions.yaml --kb handbook --gate',
    'wb eval run questions.yaml --kb handbook --mode lexical --json > lexical.json',
  ]
  static override args = { questions: questionsArg }
  static override flags = {
    ...evalFlags,
    ...rankingFlags,
    limit: Flags.integer({ default: 5, min: 0, summary: 'maximum number of worst questions to print' }),
    gate: Flags.boolean({ summary: 'fail if a metric is lower than in the lockfile', exclusive: ['update'] }),
    update: Flags.boolean({ summary: 'write the results to the lockfile' }),
    lockfile: Flags.string({ default: 'eval.lock.json', summary: 'lockfile', helpValue: 'FILE' }),
    tolerance: Flags.custom<number>({
      default: 0.01,
      defaultHelp: async () => '0.01',
      parse: async text => parseTolerance(text),
    })({ summary: 'difference by which a metric may fall with --gate', helpValue: 'NUMBER' }),
  }

  async run() {
    const { args, flags } = await this.parse(EvalRun)
    const { lockfile, tolerance } = flags
    const locked = flags.gate ? loadResult(this.io.cwd, lockfile) : undefined
    const result = await measureSettings(await this.openContext(args.questions, flags), settingsOf(flags))
    printResult(this.output, result, flags.limit)
    if (locked) {
      const updateCommand = [
        this.commandName,
        ...this.argv.filter(word => word !== '--gate').map(shellWord),
        '--update',
      ].join(' ')
      checkGate(result, locked, { lockfile, tolerance, updateCommand })
      this.output.note(`  ✓ no metric is more than ${tolerance} below ${lockfile}`)
    }
    if (flags.update) {
      writeResult(resolveTypedPath(this.io.cwd, lockfile), result)
      this.output.note(`  ✓ wrote ${lockfile}`)
    }
  }
}
