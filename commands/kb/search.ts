import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command.ts'
import { conditionFlags, conditionOf } from '../../src/cli/condition.ts'
import { savedFilterId } from '../../src/cli/find-filter.ts'
import { citationsOf, rememberSearch } from '../../src/cli/last-search.ts'
import { everywhere } from '../../src/cli/passages/everywhere.ts'
import { findPassages, search } from '../../src/cli/passages/hits.ts'
import { nothingFound } from '../../src/cli/passages/nothing.ts'
import { modes, refuseUnclear } from '../../src/cli/passages/request.ts'
import { showPassages } from '../../src/cli/passages/show.ts'
import { limits } from '../../src/contract/limits.ts'

const missing = 'QUESTION is missing: what to ask, in words or a sentence'

export default class KbSearch extends WbCommand {
  static override summary = 'find passages in a knowledge base, or in all'
  static override examples = [
    'wb kb search handbook "how do refunds work"',
    'wb kb search --all "how do refunds work"',
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
    all: Flags.boolean({ summary: 'search every knowledge base of the workspace' }),
    limit: Flags.integer({ default: 10, min: 1, max: limits.topKMax, summary: 'how many passages' }),
    mode: Flags.option({ options: ['hybrid', 'lexical', 'vector'] as const })({
      summary: 'how they are ranked',
    }),
    ...conditionFlags,
    saved: Flags.string({ summary: 'a saved filter, by name or id', helpValue: 'NAME' }),
    explain: Flags.boolean({ summary: 'show the scores as numbers' }),
  }

  async run() {
    const { args, flags, argv } = await this.parse(KbSearch)
    refuseUnclear(argv.map(String), flags)
    const question = args.question ?? args.kb ?? (await this.ask('What do you want to know?', missing))
    const { client, signal, output, resolving } = this
    const base = flags.all
      ? await everywhere(client, await this.workspace())
      : await this.knowledgeBase(args.question === undefined ? undefined : args.kb)
    const body = {
      text: question,
      filter: conditionOf(flags),
      knowledgeFilterId: await savedFilterId(resolving, base, flags.saved),
      ...(flags.mode && modes[flags.mode]),
    }
    const asked = { client, base, signal, body }
    if (output.json) return output.value(await this.waitFor('searching', search(asked, flags.limit)))
    const passages = await this.waitFor('searching', findPassages(asked, flags.limit))
    if (passages.length === 0) return output.note(await nothingFound({ client, base, flags }))
    showPassages(output, question, passages, { ...flags, names: 'names' in base ? base.names : undefined })
    if (rememberSearch(this.profile, citationsOf(base, passages)) && output.interactive)
      output.note('  wb documents show 1')
  }
}
