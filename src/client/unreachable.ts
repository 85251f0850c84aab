/** Error without an API error code: no runtime responded, or the response is not from a runtime. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable'
  /** Commands that fix the problem, if known. */
  readonly next: readonly string[] | undefined

  /**
   * @param message  description of the problem, without credentials
   * @param hint     next step for the user
   */
  constructor(
    message: string,
    readonly hint: string,
    { next, ...options }: ErrorOptions & { next?: readonly string[] } = {},
  ) {
    super(message, options)
    this.next = next
  }
}

/** Returns true if nothing listens at the address, so a runtime could be started there. */
export function isRefusedConnection(error: Unreachable): boolean {
  return error.cause instanceof Error && 'code' in error.cause && error.cause.code === 'ECONNREFUSED'
}

/** Error code for an unencrypted connection to a server that requires TLS. Node has no code for this. */
export const speaksTlsCode = 'WB_SPEAKS_TLS'

/**
 * Returns the error for a response that a runtime never sends.
 *
 * @param problem  what the server did, as a main clause
 */
export function unexpectedResponse(problem: string): Unreachable {
  return new Unreachable(
    `${problem}, which a Workbase runtime never does`,
    'Check the address (--url, WB_URL).',
  )
}
