/** No runtime answered, or what answered is not one. There is no error code, as no runtime gave one. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable'
  /** Lines to type, where it is known what mends it. */
  readonly next: readonly string[] | undefined

  /**
   * @param message  states the fact; holds no credential
   * @param hint     the next act
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

/** Returns whether nothing listens at the address, so that a runtime may be started there. */
export function isFree(error: Unreachable): boolean {
  return error.cause instanceof Error && 'code' in error.cause && error.cause.code === 'ECONNREFUSED'
}

/** Code of a cause: TLS is spoken where something else was. Node has none for it. */
export const speaksTlsCode = 'WB_SPEAKS_TLS'

/** Something answers, and does what no runtime does. */
export function notOurs(fact: string): Unreachable {
  return new Unreachable(`${fact}, which no Workbase runtime does`, 'Check the address (--url, WB_URL).')
}
