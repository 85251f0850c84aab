import { WbError } from '../../contract/errors.ts'
import { workspaces } from '../../contract/workspaces.ts'
import { acceptsTokensOnly, requiresNoCredential } from '../connection/auth-methods.ts'
import type { Session } from '../connection/session.ts'
import { UsageError } from '../errors.ts'
import { loginCommand } from '../settings/login-command.ts'
import type { Profile } from '../settings/profile.ts'
import { type ClientName, clientTitle, keyReferenceOf } from './clients.ts'

/**
 * Credential that `wb mcp serve` needs when a client starts it:
 *
 * - `none`: the runtime requires no credential, or the entry already contains the key
 * - `login`: the stored login of this machine
 * - `sign-in`: a login, which does not exist yet, because the runtime does not accept API keys
 * - `key`: an API key
 */
export type RequiredCredential = 'none' | 'login' | 'key' | 'sign-in'

interface EntryKeyOptions {
  readonly client: ClientName | undefined
  /** Undefined if the runtime rejected this command because it sent no credential. */
  readonly workspaceId: string | undefined
  /** True to write the value of the key into the entry. */
  readonly includesKey: boolean
}

/** The credential that an entry needs, and the environment variables that provide it. */
interface EntryKey {
  readonly requiredCredential: RequiredCredential
  readonly env: Readonly<Record<string, string>> | undefined
}

/**
 * Determines how an entry gets its API key.
 *
 * @throws UsageError   when the entry should include the key, but WB_API_KEY is not set
 * @throws Unreachable  when the runtime cannot be reached
 */
export async function resolveEntryKey(
  session: Session,
  { client, workspaceId, includesKey }: EntryKeyOptions,
): Promise<EntryKey> {
  const { apiKey } = session.profile
  if (includesKey && apiKey !== undefined) return { requiredCredential: 'none', env: { WB_API_KEY: apiKey } }
  if (includesKey)
    throw new UsageError('--include-key writes the value of WB_API_KEY, which is not set', [
      'WB_API_KEY=KEY wb mcp install --include-key',
    ])
  const requiredCredential = await determineRequiredCredential(session, workspaceId)
  const reference = requiredCredential === 'key' ? keyReferenceOf(client) : undefined
  return {
    requiredCredential,
    env: reference === undefined ? undefined : { WB_API_KEY: reference },
  }
}

async function determineRequiredCredential(
  session: Session,
  workspaceId: string | undefined,
): Promise<RequiredCredential> {
  const authMethods = await session.authMethods()
  if (!authMethods || requiresNoCredential(authMethods)) return 'none'
  const { used, others } = session.credential
  if ([used, ...others].some(candidate => candidate?.from === 'wb login')) return 'login'
  const mayBeAnonymous = workspaceId !== undefined && !session.profile.asOperator
  if (mayBeAnonymous && (await allowsAnonymous(session, workspaceId))) return 'none'
  return acceptsTokensOnly(authMethods) ? 'sign-in' : 'key'
}

async function allowsAnonymous({ anonymousClient }: Session, workspaceId: string): Promise<boolean> {
  try {
    await anonymousClient.call(workspaces.show, { params: { workspaceId } })
    return true
  } catch (error) {
    if (error instanceof WbError) return false
    throw error
  }
}

/** Returns lines that explain how to provide the credential. */
export function credentialInstructions(
  requiredCredential: RequiredCredential,
  client: ClientName | undefined,
  profile: Profile,
): string[] {
  if (requiredCredential === 'none') return []
  if (requiredCredential === 'login')
    return ['  the runtime requires a key; wb mcp serve uses your login on this machine']
  if (requiredCredential === 'sign-in')
    return ['  the runtime requires sign-in; sign in once on this machine:', `    ${loginCommand(profile)}`]
  return [...keyInstructions(client), ...alternativeInstructions(client, profile)]
}

function keyInstructions(client: ClientName | undefined): string[] {
  if (client === 'vscode')
    return ['  the runtime requires a key; VS Code asks for it once and stores it encrypted']
  if (client === 'cursor')
    return [
      '  the runtime requires a key; Cursor passes on WB_API_KEY from its environment:',
      '    export WB_API_KEY=KEY',
    ]
  return [
    `  the runtime requires a key, and the entry contains none; provide it to ${clientTitle(client)} in one of these ways:`,
  ]
}

function alternativeInstructions(client: ClientName | undefined, profile: Profile): string[] {
  const loginHint = `    ${loginCommand(profile, ' --with-token < KEY_FILE')}    stores it in the keychain`
  if (client === 'vscode' || client === 'cursor') return ['  or store the key on this machine:', loginHint]
  const includeKeyHint = `    wb mcp install ${client ?? ''}${client ? ' ' : ''}--include-key    writes WB_API_KEY into the entry`
  return [loginHint, includeKeyHint]
}

/** Awaits a result. Returns undefined if the runtime requires a credential and this command has none. */
export async function undefinedIfCredentialMissing<T>(
  session: Session,
  result: Promise<T>,
): Promise<T | undefined> {
  try {
    return await result
  } catch (error) {
    const isUnauthorized = error instanceof WbError && error.code === 'unauthorized'
    if (isUnauthorized && session.credential.used === undefined) return undefined
    throw error
  }
}
