import { WbError } from '../contract/errors.ts'

/** Returns true for an `Authorization` header with the Bearer scheme, even if the rest is invalid. */
export function isBearer(authorization: string): boolean {
  return /^bearer(?: |$)/i.test(authorization)
}

/**
 * Returns the token of an `Authorization` header.
 *
 * @throws unauthorized  when the header does not consist of the Bearer scheme and one token
 * @see RFC 6750 2.1
 */
export function bearerToken(authorization: string): string {
  const match = /^bearer +([^\s,]+) *$/i.exec(authorization)
  if (!match) throw new WbError('unauthorized', 'the Authorization header must be: Bearer <token>')
  return match[1]!
}
