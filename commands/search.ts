import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { requireClearQuestion } from '../src/cli/passages/ranking-options.ts'
import { SearchCommand, searchFlags } from '../src/cli/passages/search-command.ts'
import { workspaceScope } from '../src/cli/passages/workspace-scope.ts'

export default class Search extends SearchCommand {
  static override summary = 'search all knowledge bases of the workspace'
  static override examples = [
    'wb search "how do refunds work"',
    'wb search "how do refunds work" --kb handbook --limit 3',
  ]
  static override strict = false
  static override usage = 'search QUESTION'
  static override args = {
    question: Args.string({ ignoreStdin: true, description: 'search terms or a question' }),
  }
  static override flags = {
    kb: Flags.string({ char: 'k', summary: 'name or ID of a knowledge base, to search only that one' }),
    ...searchFlags,
  }

  async run() {
    const { args, flags, argv } = await this.parse(Search)
    const saved = flags.kb === undefined ? flags.saved : undefined
    requireClearQuestion(argv.map(String), { all: true, saved, searchAllCommand: 'wb search' })
    const question = await this.question(args.question)
    const base =
      flags.kb === undefined
        ? await workspaceScope(this.client, await this.workspace())
        : await this.knowledgeBase(flags.kb)
    await this.searchAndPrint(question, base, flags)
  }
}
