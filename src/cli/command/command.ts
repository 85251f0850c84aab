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
import { shellWord } from '../terminal/shell-word.ts'
import { take } from '../terminal/take.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import type { Choices, NarrowingFlags } from './choices.ts'
import { isTaken, missingValue } from './existing.ts'
import type { MissingArgument } from './parse-fault.ts'
import { StartedCommand } from './started-command.ts'

/** Rows that a terminal shows of a list unless told otherwise. */
const screenful = 50

/**
 * The base of every command: resolving of names, questions to the person, and lists.
 *
 * A command parses, calls the client, and shows.
 */
export abstract class WbCommand extends StartedCommand {
  /** What was chosen so far, by question: nobody is asked the same twice. */
  readonly #chosen = new Map<string, string>()

  protected override given(argument: MissingArgument, flags: NarrowingFlags): Promise<string> {
    return missingValue(argument, { resolving: this.resolving, flags, io: this.io, signal: this.signal })
  }

  /** A secret from the person, which is not shown. */
  protected askSecret(question: string): Promise<string> {
    return person.askSecret(this.io, question, this.signal)
  }

  /** A workspace by name or id, else what `--workspace`, the default, or there being one says. */
  protected workspace(nameOrId?: string): Promise<Workspace> {
    return resolveWorkspace(this.resolving, nameOrId)
  }

  /** The same; a runtime without workspaces is given one named `default`. */
  protected workspaceOrDefault(): Promise<Workspace> {
    return workspaceOrDefault(this.resolving, ({ name }) => this.output.note(`  ✓ made workspace ${name}`))
  }

  /** A knowledge base by name or id; the one of `.wb.yaml`, or the only one, when nothing is named. */
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

  /** A line of text from the person, or a usage error that names what is missing. */
  protected async ask(question: string, missing: string): Promise<string> {
    if (!this.canAsk) throw new UsageError(missing)
    return person.ask(this.io, question, this.signal)
  }

  /**
   * What a flag says, else the person.
   *
   * @throws UsageError  neither does: names the flag
   */
  protected async want(flag: string, given: string | undefined, question: string): Promise<string> {
    return given ?? this.ask(`${question}:`, `${flag} is missing`)
  }

  /**
   * The same, of a few that are fetched when the person has to choose.
   *
   * @throws UsageError  nobody says, or there are none to choose from: names the flag
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
   * @param change  what the flags say
   * @throws UsageError  nothing at all
   */
  protected requireChange(change: object): void {
    if (Object.values(change).every(value => value === undefined))
      throw new UsageError('nothing to change was named', [`${this.spoken} --help`])
  }

  /**
   * A yes or no from the person; no where nobody is there.
   *
   * @param standard  what Enter alone says
   */
  protected async agree(question: string, standard = true): Promise<boolean> {
    return this.canAsk && person.agree(this.io, question, this.signal, standard)
  }

  /**
   * Names are not unique: whether one more is meant is asked in a terminal, and told elsewhere.
   *
   * @throws UsageError  it is not meant
   */
  protected async allowTwin(among: Choices, name: string, flags: NarrowingFlags = {}): Promise<void> {
    if (!(await isTaken(among.among(this.resolving, flags), name))) return
    const fact = `another ${among.one} is named ${plainLine(name)}`
    if (!this.canAsk) this.output.warn(`  ! ${fact}; this makes a second one`)
    else if (!(await this.agree(`${fact}; make a second one?`, false)))
      throw new UsageError('nothing was made', ['the same command with another name makes one of that name'])
  }

  /**
   * The first items of a list, and of how many they are.
   *
   * @param limit  what `--limit` says; without it a screenful in a terminal, everything elsewhere
   */
  protected async take<T>(
    items: AsyncIterable<T> | Iterable<T>,
    limit?: number,
  ): Promise<{ rows: T[]; total?: string }> {
    return this.waitFor('reading', take(items, limit ?? (this.output.interactive ? screenful : Infinity)))
  }

  /**
   * Have the person type the name of what will go.
   *
   * @param what  says what goes with it: "knowledge base handbook with 1,204 documents"
   * @throws UsageError  nobody is there, and `--yes` was not given; or another name was typed
   */
  protected confirmDeletion(what: string, name: string, yes: boolean): Promise<void> {
    return this.confirm({ act: `deletes ${what}`, undone: 'nothing was deleted' }, name, yes)
  }

  /**
   * Have the person type a name before something is done that cannot be undone.
   *
   * @throws UsageError  nobody is there, and `--yes` was not given; or another name was typed
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
