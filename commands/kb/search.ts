import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command.ts'
import { citationsOf, rememberSearch } from '../../src/cli/last-search.ts'
import { findPassages } from '../../src/cli/passages/hits.ts'
import { nothingFound } from '../../src/cli/passages/nothing.ts'
import { filterOf, modes } from '../../src/cli/passages/request.ts'
import { showPassages } from '../../src/cli/passages/show.ts'
import { kb } from '../../src/contract/knowledge.ts'
import { limits } from '../../src/contract/limits.ts'

export default class KbSearch extends WbCommand {
  static override summary = 'find passages in a knowledge base'
  static override examples = [
    'wb kb search handbook "how do refunds work"',
    'wb kb search "how do refunds work" --limit 3 --json',
  ]
  static override args = {
    first: Args.string({
      required: true,
      ignoreStdin: true,
      description: 'knowledge base; left out, the only one',
    }),
    second: Args.string({ ignoreStdin: true, description: 'the question' }),
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
    const { args, flags } = await this.parse(KbSearch)
    const question = args.second ?? args.first
    const body = { text: question, filter: filterOf(flags.filter), ...(flags.mode && modes[flags.mode]) }
    const base = await this.knowledgeBase(args.second === undefined ? undefined : args.first)
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
