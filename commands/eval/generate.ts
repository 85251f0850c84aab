import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { resolveAgent } from '../../src/cli/chat/resolve-agent.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { UsageError } from '../../src/cli/errors.ts'
import { withUsageErrors } from '../../src/cli/eval/load-questions.ts'
import { pickPassages } from '../../src/cli/eval/pick-passages.ts'
import { proposeQuestion } from '../../src/cli/eval/propose-question.ts'
import { resolveTypedPath } from '../../src/cli/resolve-typed-path.ts'
import { formatCounted } from '../../src/cli/terminal/output.ts'
import { plain } from '../../src/cli/terminal/terminal-text.ts'
import { appendQuestion, readQuestionTexts } from '../../src/evaluation/append-question.ts'

const choices = [
  { id: 'accept', name: 'accept' },
  { id: 'edit', name: 'edit' },
  { id: 'skip', name: 'skip' },
  { id: 'stop', name: 'stop' },
]

export default class EvalGenerate extends WbCommand {
  static override summary = 'write questions with a model, and accept each one'
  static override description =
    'Asks an agent for questions about random passages that you may see, one per document. Adds the accepted questions to a YAML file for wb eval run. Questions of a model are easier than those of people.'
  static override examples = [
    'wb eval generate questions.yaml --kb handbook',
    'wb eval generate questions.yaml --kb handbook --agent maven --count 50 --yes',
  ]
  static override args = {
    questions: Args.string({ required: true, description: 'YAML file to create or extend' }),
  }
  static override flags = {
    kb: Flags.string({ char: 'k', summary: 'knowledge base name or ID [the only one]', helpValue: 'NAME' }),
    agent: Flags.string({ char: 'a', summary: 'agent name or ID [Maven, otherwise the oldest agent]' }),
    count: Flags.integer({ default: 10, min: 1, summary: 'maximum number of questions to add' }),
    yes: Flags.boolean({ char: 'y', summary: 'accept all questions' }),
  }

  async run() {
    const { args, flags } = await this.parse(EvalGenerate)
    const { client, output, signal } = this
    if (!flags.yes && !this.canAsk)
      throw new UsageError('accepting questions needs a terminal', ['add --yes to accept all questions'])
    const path = resolveTypedPath(this.io.cwd, args.questions)
    const known = withUsageErrors(() => readQuestionTexts(path))
    const base = await this.knowledgeBase(flags.kb)
    const { agent } = await resolveAgent(this.resolveContext, flags.agent)
    let added = 0
    for await (const passage of pickPassages(client, base)) {
      const proposed = await this.waitFor('asking', proposeQuestion(client, agent, passage, signal))
      if (proposed === undefined || known.has(proposed)) continue
      const accepted = flags.yes ? proposed : await this.review(proposed, passage)
      if (accepted === 'stop') break
      if (accepted === undefined || known.has(accepted)) continue
      known.add(accepted)
      appendQuestion(path, accepted, passage)
      if (++added === flags.count) break
    }
    if (output.json) output.value({ added })
    else output.note(`  ✓ added ${formatCounted(added, 'question')} to ${args.questions}`)
  }

  /** Returns the accepted question, `stop`, or undefined for a question to leave out. */
  private async review(proposed: string, { document, text }: { document: string; text: string }) {
    this.output.warn(`\n  ${plain(document)}\n  ${plain(text).replace(/\s+/g, ' ').trim()}\n`)
    const choice = await this.prompts.choose(proposed, choices)
    if (choice === 'edit') return this.prompts.ask('Question:', 'a question is missing')
    if (choice === 'stop') return 'stop'
    return choice === 'accept' ? proposed : undefined
  }
}
