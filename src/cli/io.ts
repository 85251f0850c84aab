import type { Clock } from '../base/clock.ts'

/** Signals that end a process: Ctrl-C, a request from another process, and a closed terminal. */
export const terminationSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
export type TerminationSignal = (typeof terminationSignals)[number]

/** Signals, uncaught exceptions and the end of the process. */
export interface Signals {
  /**
   * Calls the listener for each signal in {@link terminationSignals}. These signals then do not end the process. Returns a
   * function that stops listening.
   */
  listen(listener: (name: TerminationSignal) => void): () => void
  /**
   * Runs work that can block the thread, such as reading a pipe or running jq. During this time, signals end the process
   * immediately, because their listeners cannot run.
   */
  withDefaults<T>(work: () => T): T
  /**
   * Sends a signal to this process, for a key such as Ctrl-C that a terminal in raw mode does not convert to a
   * signal.
   */
  raise(name: TerminationSignal): void
  /**
   * Calls the listener for uncaught errors. These errors then do not end the process. Returns a function that stops
   * listening.
   */
  onUncaught(listener: (error: unknown) => void): () => void
  /**
   * Calls the listener before the process exits, unless a signal ends it. Returns a function that stops
   * listening.
   */
  onExit(listener: () => void): () => void
  /** Ends the process immediately. */
  exit(status: number): void
}

/**
 * All input and output of the command line. For properties of the terminal, use those of the streams (`isTTY`,
 * `columns`).
 */
export interface Io {
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  /** Environment variables by name. A command deletes `WB_API_KEY` after reading it. */
  readonly env: Record<string, string | undefined>
  /** Absolute path of the working directory. Paths that the user types are relative to it. */
  readonly cwd: string
  /** Path of the script that Node.js runs, as it appears in the command line. */
  readonly script: string
  readonly clock: Clock
  readonly signals: Signals
  /**
   * Cost of key derivation for a runtime in this process. Set only in tests. All processes that use a store
   * need the same cost.
   */
  readonly keyCost?: { readonly N: number; readonly r: number; readonly p: number }
  /** False to run the work of a server in this process without worker threads. Set only in tests. */
  readonly serverThreads?: boolean
  /**
   * Sets the exit status in advance, in case the process ends before `main` returns because no work keeps it
   * alive.
   */
  setExitStatus(status: number): void
  /** Returns true if stdout discards its input, as `/dev/null` does. */
  discardsStdout(): boolean
  /** Writes to stdout synchronously. @throws Error  the text could not be written */
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
