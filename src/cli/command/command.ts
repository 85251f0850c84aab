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
import { BaseCommand } from './base-command.ts'
import type { Choices, NarrowingFlags } from './choices.ts'
import { isNameTaken, promptForArgument } from './existing-arg.ts'
import type { MissingArgument } from './parse-error.ts'

/** Default number of rows of a list in a terminal. */
const terminalRowsDefault = 50

/** The base class of all commands, with methods that resolve names, prompt the user, and read lists. */
export abstract class WbCommand extends BaseCommand {
  /** Choices of the user by prompt, so that each prompt is shown only once. */
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

  /**
   * Returns a workspace by name or ID. Without `nameOrId`, returns the workspace that `--workspace` selects, else the
   * default workspace, else the only workspace.
   */
  protected workspace(nameOrId?: string): Promise<Workspace> {
    return resolveWorkspace(this.resolveContext, nameOrId)
  }

  /** Like {@link workspace}, but creates a workspace named `default` if the runtime has none. */
  protected workspaceOrDefault(): Promise<Workspace> {
    return workspaceOrDefault(this.resolveContext, ({ name }) =>
      this.output.note(`  ✓ created workspace ${name}`),
    )
  }

  /**
   * Returns a knowledge base by name or ID. Without `nameOrId`, returns the one that `.wb.yaml` selects, else the
   * only knowledge base.
   */
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
    const commandWith = (...words: string[]) => [this.commandName, ...words.map(shellWord)].join(' ')
    return {
      client,
      profile,
      promptForChoice: this.canAsk ? choose : undefined,
      commandWithName: name => commandWith(name, ...argv),
      commandWithWorkspace: name => commandWith(...argv, '--workspace', name),
    }
  }

  /**
   * Asks for a line of text.
   *
   * @param missing  error message if prompts are not possible
   * @throws UsageError  the command has no interactive terminal
   */
  protected async ask(question: string, missing: string): Promise<string> {
    return this.prompts.ask(question, missing)
  }

  /**
   * Returns the value of a flag, or asks for it.
   *
   * @throws UsageError  the flag is missing, and the command has no interactive terminal
   */
  protected async flagOrPrompt(flag: string, value: string | undefined, question: string): Promise<string> {
    return value ?? this.ask(`${question}:`, `${flag} is missing`)
  }

  /**
   * Like {@link flagOrPrompt}, but lets the user choose from a list.
   *
   * @param choices  fetches the list; called only if the user has to choose
   * @throws UsageError  the flag is missing, and the command has no interactive terminal, or the list is empty
   */
  protected async flagOrChoice(
    flag: string,
    value: string | undefined,
    question: string,
    choices: () => Promise<readonly { id: string; name: string }[]>,
  ): Promise<string> {
    if (value !== undefined) return value
    if (!this.canAsk) throw new UsageError(`${flag} is missing`)
    const items = await choices()
    if (items.length === 0) throw new UsageError(`${flag} is missing, and there is nothing to choose from`)
    return this.prompts.choose(question, items)
  }

  /**
   * Checks that at least one change was requested.
   *
   * @param change  values of the flags that request changes
   * @throws UsageError  all values are undefined
   */
  protected requireChange(change: object): void {
    if (Object.values(change).every(value => value === undefined))
      throw new UsageError('no change was requested', [`${this.commandName} --help`])
  }

  /**
   * Asks a yes-or-no question. Returns false without an interactive terminal.
   *
   * @param defaultAnswer  answer if the user presses only Enter
   */
  protected async askYesNo(question: string, defaultAnswer = true): Promise<boolean> {
    return this.prompts.askYesNo(question, defaultAnswer)
  }

  /**
   * Names need not be unique, but a second resource makes a name ambiguous. If a name is already in use, this asks for
   * confirmation in a terminal.
   *
   * @throws UsageError  the name is in use, and the user declined, or there is no interactive terminal
   */
  protected async confirmDuplicateName(
    choices: Choices,
    name: string,
    flags: NarrowingFlags = {},
  ): Promise<void> {
    if (!(await isNameTaken(choices.list(this.resolveContext, flags), name))) return
    const notice = `another ${choices.noun} is named ${plainLine(name)}`
    if (await this.askYesNo(`${notice}; create a second one?`, false)) return
    throw new UsageError(`${notice}, so nothing was created`, ['choose another name'])
  }

  /**
   * Returns the first items of a list. If more items follow, `total` is the number of all items.
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
   * @param deleted  description of everything that is deleted: "knowledge base handbook with 1,204 documents"
   * @throws UsageError  another name was typed, or `--yes` is missing and the command has no interactive terminal
   */
  protected confirmDeletion(deleted: string, name: string, yes: boolean): Promise<void> {
    return this.confirm({ effect: `deletes ${deleted}`, ifDeclined: 'nothing was deleted' }, name, yes)
  }

  /**
   * Asks the user to confirm an irreversible action by typing a name.
   *
   * @param effect      what the command does, in the third person: "deletes knowledge base handbook"
   * @param ifDeclined  message if the user declines: "nothing was deleted"
   * @throws UsageError  another name was typed, or `--yes` is missing and the command has no interactive terminal
   */
  protected async confirm(
    { effect, ifDeclined }: { effect: string; ifDeclined: string },
    name: string,
    yes: boolean,
  ): Promise<void> {
    if (yes) return
    if (!this.canAsk) throw new UsageError(`this ${effect}`, ['add --yes to skip the confirmation'])
    this.output.warn(`  This ${effect}.`)
    const confirmation = await this.prompts.askToConfirm(`Type ${name} to confirm:`)
    if (confirmation !== name)
      throw new UsageError(`"${confirmation}" is not "${name}"; ${ifDeclined}`, [
        'run the command again to confirm',
      ])
  }
}
