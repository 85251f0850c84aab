import { ungrantableScope } from '../../access/authorize.ts'
import type { Subject } from '../../access/subject.ts'
import { WbError } from '../../contract/errors.ts'
import { grantsScope, type Scope } from '../../contract/scopes.ts'

/** Rights of a new key. */
export interface KeyGrant {
  readonly scopes: readonly Scope[]
  /** Principal that the key acts as under row-level access; null for a new principal. */
  readonly principalId: string | null
}

/** Latest timestamp that the API allows. */
const timestampMaxMs = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * Checks that a caller has all the rights that it wants to grant to a key.
 *
 * @throws forbidden  when the caller does not have a granted scope, or names another principal without having
 *                    `manage:access`
 * @see docs/security.md#rule-7
 */
export function checkGrant(subject: Subject | null, { scopes, principalId }: KeyGrant): void {
  const excess = ungrantableScope(subject, scopes)
  if (excess) throw missingScopeError(excess, 'to grant it')
  if (subject === null || principalId === null || principalId === subject.principalId) return
  if (!grantsScope(subject.scopes, 'manage:access'))
    throw missingScopeError('manage:access', 'to name another principal')
}

function missingScopeError(scope: Scope, purpose: string): WbError {
  return new WbError('forbidden', `authenticated subject is missing required scope '${scope}' ${purpose}`, {
    requiredScope: scope,
  })
}

/**
 * Returns the end of the shortest of several lifetimes that start now; null if all are unlimited.
 *
 * @param now        time in milliseconds since 1970
 * @param lifetimes  in milliseconds; null for unlimited
 */
export function expiryAfter(now: number, lifetimes: readonly (number | null)[]): string | null {
  const shortest = Math.min(...lifetimes.map(lifetime => lifetime ?? Number.POSITIVE_INFINITY))
  return shortest === Number.POSITIVE_INFINITY ? null : isoTimestamp(Math.min(now + shortest, timestampMaxMs))
}

/**
 * Returns the expiry of a new key; null for never.
 *
 * @param requested  expiry in the request
 * @throws validation_error  when the expiry is not in the future
 * @throws forbidden         when the expiry is later than the caller is allowed to set
 * @see docs/security.md#rule-7
 */
export function expiryOfNewKey(
  requested: string | null | undefined,
  now: number,
  subject: Subject | null,
): string | null {
  const latest = expiryAfter(now, [subject?.keyLifetimeMaxMs ?? null])
  if (requested == null) return latest
  if (Date.parse(requested) <= now)
    throw new WbError('validation_error', 'expiresAt: must be in the future', {
      hint: 'Set a later time, or omit expiresAt.',
    })
  if (latest !== null && requested > latest)
    throw new WbError('forbidden', `expiresAt: keys that your key creates must expire by ${latest}`, {
      hint: 'Set an earlier time, or omit expiresAt.',
    })
  return requested
}

/** Returns the earlier of an expiry and a time in milliseconds since 1970. */
export function earlierExpiry(expiry: string | null, timeMs: number): string {
  return expiry !== null && Date.parse(expiry) < timeMs ? expiry : isoTimestamp(timeMs)
}

function isoTimestamp(timeMs: number): string {
  return new Date(timeMs).toISOString()
}
