import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { shellWord } from '../../src/base/shell-word.ts'
import { knowledgeBaseChoices } from '../../src/cli/command/choices.ts'
import { isNameTaken } from '../../src/cli/command/existing-arg.ts'
import { UsageError } from '../../src/cli/errors.ts'
import { requireClearQuestion } from '../../src/cli/passages/ranking-options.ts'
import { SearchCommand, searchFlags } from '../../src/cli/passages/search-command.ts'
import { knowledgeBaseOrAll, workspaceScope } from '../../src/cli/passages/workspace-scope.ts'

export default class KbSearch extends SearchCommand {
  static override summary = 'search a knowledge base, or all of them'
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
      description:
        'knowledge base name or ID [the only knowledge base; in a terminal, prompts if there are several]',
    }),
    question: Args.string({ ignoreStdin: true, description: 'search terms or a question' }),
  }
  static override flags = {
    all: Flags.boolean({ summary: 'search every knowledge base of the workspace' }),
    ...searchFlags,
  }

  async run() {
    const { args, flags, argv } = await this.parse(KbSearch)
    requireClearQuestion(argv.map(String), { ...flags, searchAllCommand: 'wb kb search --all' })
    const question = await this.question(args.question ?? args.kb)
    const reference = args.question === undefined ? undefined : args.kb
    const base = await this.resolveScope(reference, flags).catch(error =>
      this.explainMissingQuestion(question, error),
    )
    await this.searchAndPrint(question, base, flags)
  }

  /**
   * Throws the error that no knowledge base was chosen. If the question is the name of one, the actual question is
   * missing.
   */
  private async explainMissingQuestion(question: string, error: unknown): Promise<never> {
    if (!(error instanceof UsageError)) throw error
    if (!(await isNameTaken(knowledgeBaseChoices.list(this.resolveContext, {}), question))) throw error
    throw new UsageError(`${question} is a knowledge base; add a question`, [
      `wb kb search ${shellWord(question)} QUESTION`,
      ...error.next,
    ])
  }

  /**
   * Returns the knowledge base to search, or all of them. With a saved filter, the user cannot choose all knowledge
   * bases, because the filter belongs to one of them.
   */
  private async resolveScope(
    reference: string | undefined,
    { all, saved }: { all: boolean; saved?: string },
  ) {
    if (all) return workspaceScope(this.client, await this.workspace())
    return saved === undefined
      ? knowledgeBaseOrAll(this.resolveContext, reference)
      : this.knowledgeBase(reference)
  }
}
