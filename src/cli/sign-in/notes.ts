import type { Me } from '../../contract/auth.ts'
import type { KeychainDriver } from '../../keychain/keychain.ts'
import { due, type Field } from '../output.ts'
import { type Profile, readProfile, runtimeKey } from '../profile.ts'
import type { Session } from '../session.ts'
import { plainLine } from '../terminal-text.ts'
import type { Candidate } from './credential.ts'
import { mayOf, nameOf, reachOf } from './identity.ts'
import type { Tokens } from './kept-tokens.ts'
import { credentialsFolder } from './keychains.ts'
import type { SignedIn } from './sign-in.ts'

/** Who one is now, what one may do, for how long, and what to type next. */
export async function signedInNotes(
  session: Session,
  { me, tokens, driver }: SignedIn & { driver: KeychainDriver },
  nowMs: number,
): Promise<string[]> {
  const { profile } = session
  const reach = await reachOf(session.bearing(tokens.token), me)
  return [
    `  ✓ signed in to ${runtimeKey(profile)} as ${nameOf(me)}`,
    `    may    ${mayOf(me).join('; ')}, in ${reach}`,
    `    until  ${until(tokens, nowMs)}`,
    `    kept   ${placeOf(driver, profile)}${profile.name === 'default' ? '' : `, as profile ${profile.name}`}`,
    '  wb kb search "…"',
  ]
}

/** Nobody is asked who they are there: nothing is kept but the address. */
export function openNotes(profile: Profile): string[] {
  return [`  ${runtimeKey(profile)} asks nobody who they are; there is nothing to sign in to`, '  wb kb list']
}

/** What in the environment leads the next command to another runtime than the one that was signed in to. */
export function elsewhereNote({ name, url }: Profile): string | undefined {
  const next = readProfile({ profile: name })
  if (url === undefined || next.url === url) return undefined
  return `  ! ${next.urlFrom ?? 'WB_DATA_DIR'} in the environment names another runtime`
}

/** How long a login lasts. */
export function until({ expiresAt, refreshToken }: Tokens, nowMs: number): string {
  if (refreshToken !== undefined) return 'you log out, or the identity provider ends it'
  return expiresAt === undefined ? 'the key is revoked' : due(expiresAt, nowMs)
}

/** The same, where nothing but the runtime says so. */
export function dueOf(me: Me | null): Field {
  return me?.expiresAt ? { due: new Date(me.expiresAt * 1_000).toISOString() } : undefined
}

/** A credential without what is secret of it. */
export function credentialWords(candidate: Candidate): string {
  const what = candidate.kind === 'key' ? 'an API key' : 'a token of the identity provider'
  return candidate.from === 'WB_API_KEY'
    ? `${what} in WB_API_KEY`
    : `${what} that wb login stored for ${plainLine(candidate.login.who)}`
}

/** Where a driver keeps secrets, in words. */
export function placeOf(driver: KeychainDriver, profile: Pick<Profile, 'settingsDir'>): string {
  return driver === 'file'
    ? `in ${credentialsFolder(profile)}, which you alone can read`
    : `in the keychain of this system (${driver})`
}
