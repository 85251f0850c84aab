import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command.ts'
import { UsageError } from '../../src/cli/faults.ts'
import { citationsOf, rememberSearch } from '../../src/cli/last-search.ts'
import { findPassages } from '../../src/cli/passages/hits.ts'
import { nothingFound } from '../../src/cli/passages/nothing.ts'
import { filterOf, modes } from '../../src/cli/passages/request.ts'
import { showPassages } from '../../src/cli/passages/show.ts'
import { kb } from '../../src/contract/knowledge.ts'
import { limits } from '../../src/contract/limits.ts'

/** What was probably meant: all of it, or all but the first word. */
function quoted(words: readonly unknown[]): string[] {
  const [first, ...rest] = words
  return [`wb kb search "${words.join(' ')}"`, `wb kb search ${first} "${rest.join(' ')}"`]
}

const missing = 'QUESTION is missing: what to ask, in words or a sentence'

export default class KbSearch extends WbCommand {
  static override summary = 'find passages in a knowledge base'
  static override examples = [
    'wb kb search handbook "how do refunds work"',
    'wb kb search "how do refunds work" --limit 3 --json',
  ]
  static override strict = false
  static override usage = 'kb search [KB] QUESTION'
  static override args = {
    kb: Args.string({
      ignoreStdin: true,
      description: 'knowledge base, by name or id; left out, the only one',
    }),
    question: Args.string({ ignoreStdin: true, description: 'what to ask, in words or a sentence' }),
  }
  static override flags = {
    limit: Flags.integer({ default: 10, min: 1, max: limits.topKMax, summary: 'how many passages' }),
    mode: Flags.option({ options: ['hybrid', 'lexical', 'vector'] as const })({
      summary: 'how they are ranked',
    }),
    filter: Flags.string({ summary: 'condition on metadata, such as {"lang":"en"}', helpValue: 'JSON' }),
    explain: Flags.boolean({ summary: 'show the scores as numbers' }),
  }

  async run() {
    const { args, flags, argv } = await this.parse(KbSearch)
    if (argv.length > 2) throw new UsageError('a question of several words stands in quotes', quoted(argv))
    const question = args.question ?? args.kb ?? (await this.ask('What do you want to know?', missing))
    const body = { text: question, filter: filterOf(flags.filter), ...(flags.mode && modes[flags.mode]) }
    const base = await this.knowledgeBase(args.question === undefined ? undefined : args.kb)
    const { client, signal, output } = this
    const params = { workspaceId: base.workspaceId, knowledgeBaseId: base.knowledgeBaseId }
    if (output.json) {
      const request = { params, body: { ...body, topK: flags.limit } }
      return output.value(await this.waitFor('searching', client.call(kb.search, request, { signal })))
    }
    const passages = await this.waitFor(
      'searching',
      findPassages({ client, base, signal, body }, flags.limit),
    )
    if (passages.length === 0) return output.note(await nothingFound({ client, base, flags }))
    showPassages(output, question, passages, flags)
    if (rememberSearch(this.profile, citationsOf(base, passages)) && output.interactive)
      output.note('  wb documents show 1')
  }
}
