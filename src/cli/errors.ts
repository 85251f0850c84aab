/** The command line was typed in a way that cannot be run; nothing was sent. */
export class UsageError extends Error {
  override readonly name = 'UsageError'

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

/** The person pressed Ctrl-C, or the process was asked to end. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'

  /** @param message  says what became of the work */
  constructor(message = 'interrupted') {
    super(message)
  }
}

/** The command did part of its work; what failed was said when it failed. */
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
