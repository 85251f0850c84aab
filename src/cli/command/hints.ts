import { Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'
import type { Session } from '../connection/session.ts'
import { isCi } from '../environment.ts'
import { InvalidAddress, suggestAddress } from '../settings/address.ts'
import { loginCommand } from '../settings/login-command.ts'
import type { Profile } from '../settings/profile.ts'
import { type CommandLine, withAddressReplaced } from './command-line.ts'
import { suggestFlags } from './parse-error.ts'
import { bugHint, type Report } from './report.ts'
import { operatorHints, signInHints, unreachableHints } from './sign-in-hints.ts'

/** A failed command; `profile` and `session` are undefined if it failed before they were created. */
export interface FailedCommand {
  readonly commandLine: CommandLine
  /** Names of the command's flags. */
  readonly flags: readonly string[]
  readonly profile: Profile | undefined
  readonly session: Session | undefined
}

/**
 * Returns suggestions for an error, adapted to the command line, its profile and its runtime. If a command solves
 * the problem, the last line is this command.
 */
export async function hintsFor(error: Error, report: Report, failed: FailedCommand): Promise<string[]> {
  const { kind, code, next } = report
  const { profile, session } = failed
  const runtime = await session?.openedRuntime()
  if (session && runtime && isUnauthenticated(error)) {
    const { message } = report
    const rejectingRuntime = {
      ...runtime,
      authMethods: await session.authMethods(),
      isCi: isCi(session.io.env),
      message,
    }
    return signInHints(session.profile, session.credential.used, rejectingRuntime)
  }
  const correctedCommands = suggestOtherAddresses(error, failed)
  if (kind === 'unreachable' && correctedCommands.length === 0)
    return error instanceof Unreachable && error.next ? next : [...next, ...unreachableHints(profile, error)]
  if (kind === 'unreachable') return [...next, ...correctedCommands]
  if (correctedCommands.length > 0) return correctedCommands
  if (kind === 'keychain' && profile) return [...next, loginCommand(profile, ' --insecure-storage')]
  if (code === 'internal_error' && runtime?.kind === 'process') return [bugHint]
  if (code === 'forbidden' && runtime) return [...next, ...operatorHints(runtime.kind)]
  if (kind === 'usage' && next.length === 0)
    return [...suggestFlags(error, failed.flags), `${failed.commandLine.name} --help`]
  return next
}

/** Returns one corrected command line for each address that the user probably meant, the most likely one last. */
function suggestOtherAddresses(error: unknown, { commandLine, profile }: FailedCommand): string[] {
  if (error instanceof InvalidAddress)
    return error.suggestions.map(suggestion => withAddressReplaced(commandLine, error, suggestion))
  if (profile?.url === undefined) return []
  const { url: address, urlSource: source } = profile
  const suggestion = suggestAddress(address, error)
  if (!suggestion) return []
  // The wrong address is in the profile, so suggest the command that changes it there.
  const { url, flag } = suggestion
  if (source === 'profile') return [loginCommand({ ...profile, url }, flag && ` ${flag}`)]
  return [withAddressReplaced(commandLine, { address, source }, suggestion)]
}

/**
 * Returns true if the runtime rejected the request as unauthenticated. Returns false for errors that the CLI created,
 * for instance about a stored login, because they already contain suggestions.
 */
function isUnauthenticated(error: Error): boolean {
  return error instanceof WbError && error.code === 'unauthorized' && error.facts.wireStatus === 401
}
