/** Error in the command line, its input or its environment, which the user can correct. */
export class UsageError extends Error {
  override readonly name = 'UsageError'

  /**
   * @param message  description of the problem
   * @param next     hints: commands to run, or sentences
   */
  constructor(
    message: string,
    readonly next: readonly string[] = [],
  ) {
    super(message)
  }
}

/** Error after the user pressed Ctrl-C, or the process received a signal to end. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'

  /** @param message  state of the interrupted work */
  constructor(message = 'interrupted') {
    super(message)
  }
}

/** Error of a command that ran, but failed completely or partially. The exit status is 1. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed'

  /**
   * @param message  description of the failure
   * @param next     hints: commands to run, or sentences
   */
  constructor(
    message: string,
    readonly next: readonly string[] = [],
  ) {
    super(message)
  }
}
