import { UsageError } from '../errors.ts'
import { loginCommand } from '../settings/login-command.ts'
import { type CredentialChoice, type Profile, runtimeKey } from '../settings/profile.ts'
import type { StoredLogin } from './logins.ts'

/** A credential that could be sent: a key, or a bearer token of the identity provider. */
export type Credential =
  | { readonly kind: CredentialChoice; readonly from: 'WB_API_KEY'; readonly token: string }
  | { readonly kind: CredentialChoice; readonly from: 'wb login'; readonly login: StoredLogin }

/** The credential to send, and the available ones that are not sent. */
export interface CredentialSelection {
  readonly used: Credential | undefined
  readonly others: readonly Credential[]
  /** Reason for the choice; undefined if there was only one. */
  readonly reason: string | undefined
}

/**
 * Selects the credential to send: the one that `--credential` names, else an access token before a key,
 * else `WB_API_KEY` before a stored login. The operator sends no credential.
 *
 * @throws UsageError  no credential of the requested kind is available
 * @see docs/requirements.md#S5.8-03
 */
export function chooseCredential(profile: Profile, login: StoredLogin | undefined): CredentialSelection {
  const found = candidates(profile, login)
  if (profile.asOperator)
    return { used: undefined, others: found, reason: '--as-operator sends no credential' }
  if (profile.credential !== undefined) return selectByKind(profile, profile.credential, found)
  const bearer = found.find(({ kind }) => kind === 'login')
  const used = bearer ?? found[0]
  const others = found.filter(candidate => candidate !== used)
  return { used, others, reason: others[0] && used && explainPrecedence(used, others[0]) }
}

function candidates({ apiKey }: Profile, login: StoredLogin | undefined): Credential[] {
  const found: Credential[] = []
  if (apiKey !== undefined) found.push({ kind: credentialKind(apiKey), from: 'WB_API_KEY', token: apiKey })
  if (login) found.push({ kind: login.kind, from: 'wb login', login })
  return found
}

/**
 * Returns the kind of a token. Tokens without the prefix of API keys are access tokens of the identity
 * provider.
 */
export function credentialKind(token: string): CredentialChoice {
  return token.startsWith('wb_live_') ? 'key' : 'login'
}

function selectByKind(
  profile: Profile,
  wanted: CredentialChoice,
  found: readonly Credential[],
): CredentialSelection {
  const used = found.find(({ kind }) => kind === wanted)
  if (!used)
    throw new UsageError(`--credential ${wanted}: there is no ${wanted} for ${runtimeKey(profile)}`, [
      loginCommand(profile, wanted === 'key' ? ' --with-token < KEY_FILE' : ''),
    ])
  return { used, others: found.filter(candidate => candidate !== used), reason: 'chosen by --credential' }
}

function explainPrecedence(used: Credential, other: Credential): string {
  return used.kind !== other.kind
    ? 'an access token takes precedence over a key'
    : 'the environment takes precedence over a stored login'
}
