import { shellWord } from '../../base/shell-word.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import { UsageError } from '../faults.ts'
import {
  type Resolving,
  resolveKnowledgeBase,
  resolveWorkspace,
  workspaceOrDefault,
} from '../find/resolve.ts'
import * as person from '../terminal/ask.ts'
import { take } from '../terminal/take.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import type { Choices, NarrowingFlags } from './choices.ts'
import { isTaken, missingValue } from './existing.ts'
import type { MissingArgument } from './parse-fault.ts'
import { StartedCommand } from './started-command.ts'

/** Default number of rows of a list in a terminal. */
const screenful = 50

/** The base class of all commands: resolves names, asks questions, and reads lists. */
export abstract class WbCommand extends StartedCommand {
  /** Answers by question, to ask each question only once. */
  readonly #chosen = new Map<string, string>()

  protected override given(argument: MissingArgument, flags: NarrowingFlags): Promise<string> {
    return missingValue(argument, { resolving: this.resolving, flags, io: this.io, signal: this.signal })
  }

  /** Asks for a secret, without echoing it. */
  protected askSecret(question: string): Promise<string> {
    return person.askSecret(this.io, question, this.signal)
  }

  /** Returns a workspace by name or ID; without one, that of `--workspace`, the default, or the only one. */
  protected workspace(nameOrId?: string): Promise<Workspace> {
    return resolveWorkspace(this.resolving, nameOrId)
  }

  /** Like {@link workspace}, but creates a workspace named `default` if the runtime has none. */
  protected workspaceOrDefault(): Promise<Workspace> {
    return workspaceOrDefault(this.resolving, ({ name }) => this.output.note(`  ✓ made workspace ${name}`))
  }

  /** Returns a knowledge base by name or ID; without one, that of `.wb.yaml`, or the only one. */
  protected knowledgeBase(nameOrId?: string): Promise<KnowledgeBase> {
    return resolveKnowledgeBase(this.resolving, nameOrId)
  }

  protected get resolving(): Resolving {
    const { client, profile, argv } = this
    const choose: Resolving['choose'] = async (question, choices) => {
      this.progress.end()
      const answer =
        this.#chosen.get(question) ?? (await person.choose(this.io, question, choices, this.signal))
      this.#chosen.set(question, answer)
      return answer
    }
    const typed = (...words: string[]) => [this.spoken, ...words.map(shellWord)].join(' ')
    return {
      client,
      profile,
      choose: this.canAsk ? choose : undefined,
      withBase: name => typed(name, ...argv),
      withWorkspace: name => typed(...argv, '--workspace', name),
    }
  }

  /**
   * Asks for a line of text.
   *
   * @param missing  error message if the user cannot be asked
   * @throws UsageError  there is no terminal to ask in
   */
  protected async ask(question: string, missing: string): Promise<string> {
    if (!this.canAsk) throw new UsageError(missing)
    return person.ask(this.io, question, this.signal)
  }

  /**
   * Returns the value of a flag, or asks for it.
   *
   * @throws UsageError  the flag is missing, and there is no terminal to ask in
   */
  protected async want(flag: string, given: string | undefined, question: string): Promise<string> {
    return given ?? this.ask(`${question}:`, `${flag} is missing`)
  }

  /**
   * Like {@link want}, but lets the user choose from a list.
   *
   * @param choices  fetches the list; called only if the user has to choose
   * @throws UsageError  the flag is missing, and there is no terminal to ask in or the list is empty
   */
  protected async wantOneOf(
    flag: string,
    given: string | undefined,
    question: string,
    choices: () => Promise<readonly { id: string; name: string }[]>,
  ): Promise<string> {
    if (given !== undefined) return given
    if (!this.canAsk) throw new UsageError(`${flag} is missing`)
    const offered = await choices()
    if (offered.length === 0) throw new UsageError(`${flag} is missing, and there is none to choose from`)
    return person.choose(this.io, question, offered, this.signal)
  }

  /**
   * Checks that at least one change was requested.
   *
   * @param change  values of the flags
   * @throws UsageError  all of them are undefined
   */
  protected requireChange(change: object): void {
    if (Object.values(change).every(value => value === undefined))
      throw new UsageError('nothing to change was named', [`${this.spoken} --help`])
  }

  /**
   * Asks a yes-or-no question. Returns false if there is no terminal to ask in.
   *
   * @param standard  answer of Enter alone
   */
  protected async agree(question: string, standard = true): Promise<boolean> {
    return this.canAsk && person.agree(this.io, question, this.signal, standard)
  }

  /**
   * Checks if a name is already in use. Names are not unique, so a second use only needs confirmation in a
   * terminal, and a warning elsewhere.
   *
   * @throws UsageError  the user declined
   */
  protected async allowTwin(among: Choices, name: string, flags: NarrowingFlags = {}): Promise<void> {
    if (!(await isTaken(among.among(this.resolving, flags), name))) return
    const fact = `another ${among.one} is named ${plainLine(name)}`
    if (!this.canAsk) this.output.warn(`  ! ${fact}; this makes a second one`)
    else if (!(await this.agree(`${fact}; make a second one?`, false)))
      throw new UsageError('nothing was made', ['the same command with another name makes one of that name'])
  }

  /**
   * Returns the first items of a list, and the total number of items.
   *
   * @param limit  value of `--limit`; the default is {@link screenful} in a terminal, and all items elsewhere
   */
  protected async take<T>(
    items: AsyncIterable<T> | Iterable<T>,
    limit?: number,
  ): Promise<{ rows: T[]; total?: string }> {
    return this.waitFor('reading', take(items, limit ?? (this.output.interactive ? screenful : Infinity)))
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
    if (!this.canAsk) throw new UsageError(`this ${act}`, ['add --yes to go on without being asked'])
    this.output.warn(`  This ${act}.`)
    const typed = await person.askToConfirm(this.io, `Type ${name} to go on:`, this.signal)
    if (typed !== name)
      throw new UsageError(`"${typed}" is not "${name}"; ${undone}`, ['the same command asks again'])
  }
}
