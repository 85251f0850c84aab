import { UsageError } from '../errors.ts'
import { loginCommand } from '../settings/login-command.ts'
import { type CredentialChoice, type Profile, runtimeKey } from '../settings/profile.ts'
import type { StoredLogin } from './logins.ts'

/** An available credential: an API key, or an access token of the identity provider. */
export type Credential =
  | { readonly kind: CredentialChoice; readonly from: 'WB_API_KEY'; readonly token: string }
  | { readonly kind: CredentialChoice; readonly from: 'wb login'; readonly login: StoredLogin }

/** The credential to send, and the other available credentials. */
export interface CredentialSelection {
  readonly used: Credential | undefined
  readonly others: readonly Credential[]
  /** Reason for the choice; undefined if at most one credential is available. */
  readonly reason: string | undefined
}

/**
 * Selects the credential to send. `--credential` takes precedence; otherwise, an access token takes precedence over
 * a key, and `WB_API_KEY` over a stored login. With `--as-operator`, no credential is sent.
 *
 * @throws UsageError  no credential of the requested type is available
 * @see docs/requirements.md#S5.8-03
 */
export function chooseCredential(profile: Profile, login: StoredLogin | undefined): CredentialSelection {
  const available = listAvailable(profile, login)
  if (profile.asOperator)
    return { used: undefined, others: available, reason: '--as-operator sends no credential' }
  if (profile.credential !== undefined) return selectByKind(profile, profile.credential, available)
  const loginCredential = available.find(({ kind }) => kind === 'login')
  const used = loginCredential ?? available[0]
  const others = available.filter(candidate => candidate !== used)
  return { used, others, reason: others[0] && used && explainPrecedence(used, others[0]) }
}

function listAvailable({ apiKey }: Profile, login: StoredLogin | undefined): Credential[] {
  const available: Credential[] = []
  if (apiKey !== undefined)
    available.push({ kind: credentialKind(apiKey), from: 'WB_API_KEY', token: apiKey })
  if (login) available.push({ kind: login.kind, from: 'wb login', login })
  return available
}

/**
 * Returns the kind of a token. A token without the prefix of API keys is an access token of the identity provider.
 */
export function credentialKind(token: string): CredentialChoice {
  return token.startsWith('wb_live_') ? 'key' : 'login'
}

function selectByKind(
  profile: Profile,
  requested: CredentialChoice,
  available: readonly Credential[],
): CredentialSelection {
  const used = available.find(({ kind }) => kind === requested)
  if (!used)
    throw new UsageError(`--credential ${requested}: there is no ${requested} for ${runtimeKey(profile)}`, [
      loginCommand(profile, requested === 'key' ? ' --with-token < KEY_FILE' : ''),
    ])
  return { used, others: available.filter(candidate => candidate !== used), reason: 'chosen by --credential' }
}

function explainPrecedence(selected: Credential, other: Credential): string {
  return selected.kind !== other.kind
    ? 'an access token takes precedence over a key'
    : 'the environment takes precedence over a stored login'
}
