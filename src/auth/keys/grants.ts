import { ungrantable } from '../../access/gate.ts'
import type { Subject } from '../../access/subject.ts'
import { WbError } from '../../contract/errors.ts'
import { holds, type Scope } from '../../contract/scopes.ts'

/** What a key would be good for. */
export interface Grant {
  readonly scopes: readonly Scope[]
  /** Who it would be under row-level access; null is somebody new. */
  readonly principalId: string | null
}

/** No timestamp of the contract goes further. */
const lastMs = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * Nobody grants what they do not hold.
 *
 * @throws forbidden  a scope that the caller does not hold, or the name of somebody else
 * @see docs/security.md#rule-7
 */
export function checkGrant(subject: Subject | null, { scopes, principalId }: Grant): void {
  const excess = ungrantable(subject, scopes)
  if (excess) throw missing(excess, 'to grant it')
  if (subject === null || principalId === null || principalId === subject.principalId) return
  if (!holds(subject.scopes, 'manage:access')) throw missing('manage:access', 'to name another principal')
}

function missing(scope: Scope, purpose: string): WbError {
  return new WbError('forbidden', `authenticated subject is missing required scope '${scope}' ${purpose}`, {
    requiredScope: scope,
  })
}

/** When that ends which lasts the shortest of some spans from now, in milliseconds; null is never. */
export function endAfter(now: number, spans: readonly (number | null)[]): string | null {
  const shortest = Math.min(...spans.map(span => span ?? Number.POSITIVE_INFINITY))
  return shortest === Number.POSITIVE_INFINITY ? null : iso(Math.min(now + shortest, lastMs))
}

/**
 * When a new key ends; null is never.
 *
 * @param asked  what the request says of it
 * @throws validation_error  it is over before it begins
 * @throws forbidden         it outlasts what the caller's own key was made for
 * @see docs/security.md#rule-7
 */
export function endOf(asked: string | null | undefined, now: number, subject: Subject | null): string | null {
  const latest = endAfter(now, [subject?.grantSpanMs ?? null])
  if (asked == null) return latest
  if (Date.parse(asked) <= now)
    throw new WbError('validation_error', 'expiresAt: must lie in the future', {
      hint: 'Name a later moment, or leave expiresAt out.',
    })
  if (latest !== null && asked > latest)
    throw new WbError('forbidden', `expiresAt: a key that expires mints keys up to ${latest}, no later`, {
      hint: 'Name an earlier moment, or leave expiresAt out.',
    })
  return asked
}

/** The earlier of an end and a moment, in milliseconds since 1970. */
export function earlier(end: string | null, moment: number): string {
  return end !== null && Date.parse(end) < moment ? end : iso(moment)
}

function iso(moment: number): string {
  return new Date(moment).toISOString()
}
