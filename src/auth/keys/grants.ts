import { ungrantableScope } from '../../access/authorize.ts'
import type { Subject } from '../../access/subject.ts'
import { WbError } from '../../contract/errors.ts'
import { grantsScope, type Scope } from '../../contract/scopes.ts'

/** Rights of a new key. */
export interface KeyGrant {
  readonly scopes: readonly Scope[]
  /** Principal of the key under row-level access; null for a new principal. */
  readonly principalId: string | null
}

/** Latest timestamp that the contract allows. */
const timestampMaxMs = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * Checks that a caller holds everything that it grants.
 *
 * @throws forbidden  when the caller lacks a granted scope, or `manage:access` to name another principal
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
 * Returns the time when the shortest of some spans ends, counted from now. Spans are in milliseconds; null
 * never ends.
 */
export function expiryAfter(now: number, spans: readonly (number | null)[]): string | null {
  const shortest = Math.min(...spans.map(span => span ?? Number.POSITIVE_INFINITY))
  return shortest === Number.POSITIVE_INFINITY ? null : isoTimestamp(Math.min(now + shortest, timestampMaxMs))
}

/**
 * Returns the expiry of a new key; null for never.
 *
 * @param requested  expiry in the request
 * @throws validation_error  when the expiry is not in the future
 * @throws forbidden         when the key would outlast the maximum of the caller's key
 * @see docs/security.md#rule-7
 */
export function expiryOfNewKey(
  requested: string | null | undefined,
  now: number,
  subject: Subject | null,
): string | null {
  const latest = expiryAfter(now, [subject?.grantSpanMs ?? null])
  if (requested == null) return latest
  if (Date.parse(requested) <= now)
    throw new WbError('validation_error', 'expiresAt: must lie in the future', {
      hint: 'Name a later moment, or leave expiresAt out.',
    })
  if (latest !== null && requested > latest)
    throw new WbError('forbidden', `expiresAt: a key that expires creates keys up to ${latest}, no later`, {
      hint: 'Name an earlier moment, or leave expiresAt out.',
    })
  return requested
}

/** Returns the earlier of an expiry and a time in milliseconds since 1970. */
export function earlierExpiry(end: string | null, timeMs: number): string {
  return end !== null && Date.parse(end) < timeMs ? end : isoTimestamp(timeMs)
}

function isoTimestamp(timeMs: number): string {
  return new Date(timeMs).toISOString()
}
