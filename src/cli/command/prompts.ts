import { isCi } from '../environment.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import * as terminal from '../terminal/ask.ts'

/** Prompts of a command. They require a terminal. */
export class Prompts {
  constructor(
    private readonly io: Io,
    private readonly signal: AbortSignal,
    /** True with `--json`, which disables prompts. */
    private readonly isJson: boolean,
  ) {}

  /** True if prompts are possible: in a terminal, but not in CI or with JSON output. */
  get canAsk(): boolean {
    const { stdin, stderr, env } = this.io
    return stdin.isTTY === true && stderr.isTTY === true && !isCi(env) && !this.isJson
  }

  /**
   * Asks for a line of text.
   *
   * @param missing  error message if prompts are not possible
   * @throws UsageError  the command has no interactive terminal
   */
  async ask(question: string, missing: string): Promise<string> {
    if (!this.canAsk) throw new UsageError(missing)
    return terminal.ask(this.io, question, this.signal)
  }

  /** Asks for a secret, without echoing it. */
  askSecret(question: string): Promise<string> {
    return terminal.askSecret(this.io, question, this.signal)
  }

  /**
   * Asks a yes-or-no question. Returns false without an interactive terminal.
   *
   * @param defaultAnswer  answer if the user presses only Enter
   */
  async askYesNo(question: string, defaultAnswer = true): Promise<boolean> {
    return this.canAsk && terminal.askYesNo(this.io, question, this.signal, defaultAnswer)
  }

  /** Lets the user choose from a list, and returns the ID of the choice. Call this only if `canAsk` is true. */
  choose(question: string, choices: readonly { id: string; name: string }[]): Promise<string> {
    return terminal.choose(this.io, question, choices, this.signal)
  }

  /** Asks for a line that confirms an irreversible action. Call this only if `canAsk` is true. */
  askToConfirm(question: string): Promise<string> {
    return terminal.askToConfirm(this.io, question, this.signal)
  }
}
