import type { Clock } from '../base/clock.ts'

/** Signals that ask a process to end: Ctrl-C, the program that started it, and a terminal that closes. */
export const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
export type EndingSignal = (typeof endingSignals)[number]

/** Signals, uncaught exceptions and the end of the process. */
export interface Signals {
  /** Calls the listener for each signal that asks the process to end. Returns a function that stops listening. */
  listen(listener: (name: EndingSignal) => void): () => void
  /**
   * Runs work that may block the thread, such as reading a pipe or running jq. During the work, signals have their
   * default action and end the process, because listeners could not run.
   */
  withDefaults<T>(work: () => T): T
  /** Sends a signal to this process, for a key that a terminal in raw mode does not turn into one. */
  raise(name: EndingSignal): void
  /** Calls the listener for errors that nothing caught, which then do not end the process. Returns a function that stops. */
  onUncaught(listener: (error: unknown) => void): () => void
  /** Calls the listener before the process exits, whatever the reason, except a signal. Returns a function that stops. */
  onExit(listener: () => void): () => void
  /** Ends the process at once. */
  exit(status: number): void
}

/** All input and output of the command line. Terminal facts (`isTTY`, `columns`) are those of the streams. */
export interface Io {
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  /** Environment variables by name. A command deletes `WB_API_KEY` after reading it. */
  readonly env: Record<string, string | undefined>
  /** Working directory, absolute. Paths that a person typed are relative to it. */
  readonly cwd: string
  /** Path of the script that was started, as Node.js was given it. */
  readonly script: string
  readonly clock: Clock
  readonly signals: Signals
  /**
   * Cost of key derivation for a runtime in this process. Only tests set it; every process that uses a store needs the
   * same cost.
   */
  readonly keyCost?: { readonly N: number; readonly r: number; readonly p: number }
  /** Sets the status of the process, in case nothing keeps it alive until `main` returns. */
  setExitStatus(status: number): void
  /** True if stdout discards what is written to it, as `/dev/null` does. */
  discardsStdout(): boolean
  /** Writes to stdout before it returns. @throws Error  the text could not be written */
  writeNow(text: string): void
  /** Opens a page in the browser. @throws Error  no browser was found */
  openBrowser(url: string): Promise<void>
  /**
   * Copies a text with a clipboard program, which reads it from stdin.
   *
   * @throws Error  the program failed; the message does not contain the text
   */
  copyWith(command: readonly string[], text: string): Promise<void>
}
