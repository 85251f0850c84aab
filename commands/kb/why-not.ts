import * as Args from '@oclif/core/args'
import { WbCommand } from '../../src/cli/command/command.ts'
import { documentName } from '../../src/cli/fields/resources.ts'
import { kbFlag } from '../../src/cli/find/document.ts'
import { parseCondition } from '../../src/cli/passages/parse-condition.ts'
import { printWhyNot } from '../../src/cli/passages/print-why-not.ts'
import { rankingOptions } from '../../src/cli/passages/ranking-options.ts'
import { savedFilterId, searchFlags } from '../../src/cli/passages/search-command.ts'
import { shapingOptions } from '../../src/cli/passages/shaping-flags.ts'
import { askWhyNot } from '../../src/cli/passages/why-not.ts'
import type { KnowledgeBase } from '../../src/contract/knowledge.ts'

const { explain: _, ...whyNotFlags } = searchFlags

export default class KbWhyNot extends WbCommand {
  static override summary = 'explain why a search does not find a document'
  static override description =
    'Prints the stage at which the document drops out, its place in each list, and what could bring it in.'
  static override examples = [
    'wb kb why-not "how do I replace a token" guide/keys.md',
    'wb kb why-not "how do I replace a token" guide/keys.md --limit 3 --json',
  ]
  static override args = {
    question: Args.string({ ignoreStdin: true, required: true, description: 'search terms or a question' }),
    document: Args.string({
      ignoreStdin: true,
      required: true,
      description: 'ID, file name, source ID or title of the document',
    }),
  }
  static override flags = { kb: kbFlag, ...whyNotFlags }

  async run() {
    const { args, flags } = await this.parse(KbWhyNot)
    const queryFor = async (base: KnowledgeBase) => ({
      text: args.question,
      topK: flags.limit,
      filter: parseCondition(flags),
      knowledgeFilterId: await savedFilterId(this.resolveContext, base, flags.saved),
      ...rankingOptions({ ...flags, lexicalWeight: flags['lexical-weight'] }),
      ...shapingOptions(flags),
    })
    const options = { signal: this.signal, limitsPerDocument: !this.output.json }
    const ask = askWhyNot(this.resolveContext, args.document, flags.kb, queryFor, options)
    const { answer, document, others } = await this.waitFor('searching', ask)
    const name = document ? documentName(document) : args.document
    printWhyNot(this.output, answer, { document: name, others })
  }
}
