import { Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'
import type { Session } from '../connection/session.ts'
import { isCi } from '../environment.ts'
import { meantInstead, WrongAddress } from '../settings/address.ts'
import { loginLine } from '../settings/login-line.ts'
import type { Profile } from '../settings/profile.ts'
import { flagsMeant } from './parse-fault.ts'
import { defectLine, type Report } from './report.ts'
import { retyped, type Typed } from './retyped.ts'
import { asOwner, signingIn, unreached } from './signing-in.ts'

/** A failed command; `profile` and `session` are undefined if it failed before they were created. */
export interface Failed {
  readonly typed: Typed
  /** Names of the command's flags. */
  readonly flags: readonly string[]
  readonly profile: Profile | undefined
  readonly session: Session | undefined
}

/**
 * Returns suggestions after an error, adapted to the command line, its profile and its runtime. If typing a
 * command solves the problem, the last line is that command.
 */
export async function nextLines(error: Error, report: Report, failed: Failed): Promise<string[]> {
  const { kind, code, next } = report
  const { profile, session } = failed
  const met = await session?.met()
  if (session && met && isRefused(error)) {
    const { message } = report
    const stranger = { ...met, ways: await session.ways(), isCi: isCi(session.io.env), message }
    return signingIn(session.profile, session.credential.used, stranger)
  }
  const otherwise = elsewhere(error, failed)
  if (kind === 'unreachable' && otherwise.length === 0)
    return error instanceof Unreachable && error.next ? next : [...next, ...unreached(profile, error)]
  if (kind === 'unreachable') return [...next, ...otherwise]
  if (otherwise.length > 0) return otherwise
  if (kind === 'keychain' && profile) return [...next, loginLine(profile, ' --insecure-storage')]
  if (code === 'internal_error' && met?.kind === 'process') return [defectLine]
  if (code === 'forbidden' && met) return [...next, ...asOwner(met.kind)]
  if (kind === 'usage' && next.length === 0)
    return [...flagsMeant(error, failed.flags), `${failed.typed.spoken} --help`]
  return next
}

/** Returns the command line with addresses that were probably meant, the most likely one last. */
function elsewhere(error: unknown, { typed, profile }: Failed): string[] {
  if (error instanceof WrongAddress) return error.meant.map(meant => retyped(typed, error, meant))
  if (profile?.url === undefined) return []
  const { url: address, urlFrom: from } = profile
  const meant = meantInstead(address, error)
  if (!meant) return []
  // An address in a profile is corrected in the profile.
  const { url, flag } = meant
  if (from === 'profile') return [loginLine({ ...profile, url }, flag && ` ${flag}`)]
  return [retyped(typed, { address, from }, meant)]
}

/**
 * Returns true if the runtime rejected the request as unauthenticated. Errors of the CLI itself about a
 * stored login are excluded: they bring their own suggestions.
 */
function isRefused(error: Error): boolean {
  return error instanceof WbError && error.code === 'unauthorized' && error.facts.wireStatus === 401
}
