/** An invalid command line; no request was sent. */
export class UsageError extends Error {
  override readonly name = 'UsageError'

  /**
   * @param message  description of the problem
   * @param next     hints: commands or sentences, one per line
   */
  constructor(
    message: string,
    readonly next: readonly string[] = [],
  ) {
    super(message)
  }
}

/** The user pressed Ctrl-C, or the process was asked to end. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'

  /** @param message  state of the interrupted work */
  constructor(message = 'interrupted') {
    super(message)
  }
}

/** A command that ran but failed, for example in a check or in part of its work. Its exit status is 1. */
export class CommandFailed extends Error {
  override readonly name = 'PartlyFailed'

  /**
   * @param message  states the fact
   * @param next     lines to type or to know, one each
   */
  constructor(
    message: string,
    readonly next: readonly string[] = [],
  ) {
    super(message)
  }
}
