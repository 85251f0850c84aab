/** No runtime responded, or the response is not from a runtime. Therefore there is no API error code. */
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

/** Error code for a server that requires TLS on an unencrypted connection. Node has no code for this. */
export const speaksTlsCode = 'WB_SPEAKS_TLS'

/** Returns the error for a response that a runtime never sends. */
export function unexpectedResponse(fact: string): Unreachable {
  return new Unreachable(`${fact}, which a Workbase runtime never does`, 'Check the address (--url, WB_URL).')
}
