import { shellWord } from '../../base/shell-word.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import { UsageError } from '../errors.ts'
import {
  type ResolveContext,
  resolveKnowledgeBase,
  resolveWorkspace,
  workspaceOrDefault,
} from '../find/resolve.ts'
import { takeFirst } from '../terminal/take-first.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import type { Choices, NarrowingFlags } from './choices.ts'
import { isNameTaken, promptForArgument } from './existing-arg.ts'
import type { MissingArgument } from './parse-error.ts'
import { StartedCommand } from './started-command.ts'

/** Default number of rows of a list in a terminal. */
const terminalRowsDefault = 50

/** The base class of all commands: resolves names, asks questions, and reads lists. */
export abstract class WbCommand extends StartedCommand {
  /** Answers by question, to ask each question only once. */
  readonly #answers = new Map<string, string>()

  protected override promptForArgument(argument: MissingArgument, flags: NarrowingFlags): Promise<string> {
    return promptForArgument(argument, {
      resolveContext: this.resolveContext,
      flags,
      io: this.io,
      signal: this.signal,
    })
  }

  /** Asks for a secret, without echoing it. */
  protected askSecret(question: string): Promise<string> {
    return this.prompts.askSecret(question)
  }

  /** Returns a workspace by name or ID; without one, that of `--workspace`, the default, or the only one. */
  protected workspace(nameOrId?: string): Promise<Workspace> {
    return resolveWorkspace(this.resolveContext, nameOrId)
  }

  /** Like {@link workspace}, but creates a workspace named `default` if the runtime has none. */
  protected workspaceOrDefault(): Promise<Workspace> {
    return workspaceOrDefault(this.resolveContext, ({ name }) =>
      this.output.note(`  ✓ created workspace ${name}`),
    )
  }

  /** Returns a knowledge base by name or ID; without one, that of `.wb.yaml`, or the only one. */
  protected knowledgeBase(nameOrId?: string): Promise<KnowledgeBase> {
    return resolveKnowledgeBase(this.resolveContext, nameOrId)
  }

  protected get resolveContext(): ResolveContext {
    const { client, profile, argv } = this
    const choose: ResolveContext['promptForChoice'] = async (question, choices) => {
      this.progress.end()
      const answer = this.#answers.get(question) ?? (await this.prompts.choose(question, choices))
      this.#answers.set(question, answer)
      return answer
    }
    const typed = (...words: string[]) => [this.commandName, ...words.map(shellWord)].join(' ')
    return {
      client,
      profile,
      promptForChoice: this.canAsk ? choose : undefined,
      commandWithBase: name => typed(name, ...argv),
      commandWithWorkspace: name => typed(...argv, '--workspace', name),
    }
  }

  /**
   * Asks for a line of text.
   *
   * @param missing  error message if the user cannot be asked
   * @throws UsageError  there is no terminal to ask in
   */
  protected async ask(question: string, missing: string): Promise<string> {
    return this.prompts.ask(question, missing)
  }

  /**
   * Returns the value of a flag, or asks for it.
   *
   * @throws UsageError  the flag is missing, and there is no terminal to ask in
   */
  protected async flagOrPrompt(flag: string, given: string | undefined, question: string): Promise<string> {
    return given ?? this.ask(`${question}:`, `${flag} is missing`)
  }

  /**
   * Like {@link flagOrPrompt}, but lets the user choose from a list.
   *
   * @param choices  fetches the list; called only if the user has to choose
   * @throws UsageError  the flag is missing, and there is no terminal to ask in or the list is empty
   */
  protected async flagOrChoice(
    flag: string,
    given: string | undefined,
    question: string,
    choices: () => Promise<readonly { id: string; name: string }[]>,
  ): Promise<string> {
    if (given !== undefined) return given
    if (!this.canAsk) throw new UsageError(`${flag} is missing`)
    const offered = await choices()
    if (offered.length === 0) throw new UsageError(`${flag} is missing, and there is nothing to choose from`)
    return this.prompts.choose(question, offered)
  }

  /**
   * Checks that at least one change was requested.
   *
   * @param change  values of the flags
   * @throws UsageError  all of them are undefined
   */
  protected requireChange(change: object): void {
    if (Object.values(change).every(value => value === undefined))
      throw new UsageError('no change was given', [`${this.commandName} --help`])
  }

  /**
   * Asks a yes-or-no question. Returns false if there is no terminal to ask in.
   *
   * @param standard  answer of Enter alone
   */
  protected async askYesNo(question: string, standard = true): Promise<boolean> {
    return this.prompts.askYesNo(question, standard)
  }

  /**
   * Checks if a name is already in use. Names are not unique, so a second use only needs confirmation in a
   * terminal, and a warning elsewhere.
   *
   * @throws UsageError  the user declined
   */
  protected async confirmDuplicateName(
    choices: Choices,
    name: string,
    flags: NarrowingFlags = {},
  ): Promise<void> {
    if (!(await isNameTaken(choices.list(this.resolveContext, flags), name))) return
    const fact = `another ${choices.noun} is named ${plainLine(name)}`
    if (!this.canAsk) this.output.warn(`  ! ${fact}; this creates a second one`)
    else if (!(await this.askYesNo(`${fact}; create a second one?`, false)))
      throw new UsageError('nothing was created', ['choose another name'])
  }

  /**
   * Returns the first items of a list, and the total number of items.
   *
   * @param limit  value of `--limit`; the default is {@link terminalRowsDefault} in a terminal, and all items elsewhere
   */
  protected async takeRows<T>(
    items: AsyncIterable<T> | Iterable<T>,
    limit?: number,
  ): Promise<{ rows: T[]; total?: string }> {
    return this.waitFor(
      'reading',
      takeFirst(items, limit ?? (this.output.interactive ? terminalRowsDefault : Infinity)),
    )
  }

  /**
   * Asks the user to confirm a deletion by typing a name.
   *
   * @param what  everything that is deleted: "knowledge base handbook with 1,204 documents"
   * @throws UsageError  another name was typed, or `--yes` is missing and there is no terminal to ask in
   */
  protected confirmDeletion(what: string, name: string, yes: boolean): Promise<void> {
    return this.confirm({ act: `deletes ${what}`, undone: 'nothing was deleted' }, name, yes)
  }

  /**
   * Asks the user to confirm an irreversible action by typing a name.
   *
   * @throws UsageError  another name was typed, or `--yes` is missing and there is no terminal to ask in
   */
  protected async confirm(
    { act, undone }: { act: string; undone: string },
    name: string,
    yes: boolean,
  ): Promise<void> {
    if (yes) return
    if (!this.canAsk) throw new UsageError(`this ${act}`, ['add --yes to skip the confirmation'])
    this.output.warn(`  This ${act}.`)
    const typed = await this.prompts.askToConfirm(`Type ${name} to confirm:`)
    if (typed !== name)
      throw new UsageError(`"${typed}" is not "${name}"; ${undone}`, ['run the command again to confirm'])
  }
}
