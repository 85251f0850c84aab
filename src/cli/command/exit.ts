import { Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'
import { KeychainUnavailable } from '../../keychain/keychain.ts'
import { Interrupted, UsageError } from '../errors.ts'

/** Exit statuses. @see docs/cli.md */
export const exit = {
  ok: 0,
  failed: 1,
  usage: 2,
  notAllowed: 3,
  notFound: 4,
  conflict: 5,
  unavailable: 6,
  interrupted: 130,
} as const

const exitStatusByHttpStatus: Record<number, number> = {
  401: exit.notAllowed,
  403: exit.notAllowed,
  404: exit.notFound,
  408: exit.unavailable,
  409: exit.conflict,
  429: exit.unavailable,
  501: exit.unavailable,
  502: exit.unavailable,
  503: exit.unavailable,
  504: exit.unavailable,
}

/** Returns the exit status of a command that failed with this error. */
export function exitStatus(error: unknown): number {
  if (error instanceof Interrupted) return exit.interrupted
  if (error instanceof UsageError || isParseError(error)) return exit.usage
  if (error instanceof Unreachable) return exit.unavailable
  if (error instanceof KeychainUnavailable || isSignInFailure(error)) return exit.notAllowed
  if (error instanceof WbError) return exitStatusByHttpStatus[wireStatus(error)] ?? exit.failed
  return exit.failed
}

/** Returns true if the identity provider denied a sign-in, or the time for the sign-in has expired. */
function isSignInFailure(error: unknown): boolean {
  return error instanceof WbError && (error.code === 'access_denied' || error.code === 'expired_token')
}

function wireStatus(error: WbError): number {
  return typeof error.facts.wireStatus === 'number' ? error.facts.wireStatus : error.status
}

/** Returns true for errors that oclif throws if it cannot parse arguments or flags. */
export function isParseError(error: unknown): error is Error {
  if (!(error instanceof Error) || !('oclif' in error)) return false
  return (error.oclif as { exit?: unknown } | undefined)?.exit === exit.usage
}
