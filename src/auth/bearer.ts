import { WbError } from '../contract/errors.ts'

/** Whether an `Authorization` header is of the scheme of this API, whatever follows. */
export function isBearer(authorization: string): boolean {
  return /^bearer(?: |$)/i.test(authorization)
}

/**
 * The token of an `Authorization` header.
 *
 * @throws unauthorized  another scheme, no token, or something beside it
 * @see RFC 6750 2.1
 */
export function bearerToken(authorization: string): string {
  const match = /^bearer +([^\s,]+) *$/i.exec(authorization)
  if (!match) throw new WbError('unauthorized', 'the Authorization header must be: Bearer <token>')
  return match[1]!
}
