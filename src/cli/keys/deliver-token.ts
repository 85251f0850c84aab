import { shellWord } from '../../base/shell-word.ts'
import type { ApiKey } from '../../contract/keys.ts'
import type { RuntimeAuthMethods } from '../connection/auth-methods.ts'
import { errorCodeOf } from '../error-code-of.ts'
import { CommandFailed } from '../errors.ts'
import { formatLifetime } from '../terminal/duration.ts'
import type { Output } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { describeScopes } from './describe-scopes.ts'
import type { TokenTarget } from './token-target.ts'

/** A key and its token, as returned by the API. */
interface CreatedKey {
  readonly plaintext: string
  readonly key: ApiKey
}

/**
 * Writes the token of a new key to `target`.
 *
 * @throws CommandFailed  when the key was created but its token could not be written
 */
export async function deliverToken(target: TokenTarget, output: Output, created: CreatedKey): Promise<void> {
  const { plaintext, ...withoutToken } = created
  const { keyId, label } = created.key
  try {
    await target.write(
      output.json && target.kind === 'stdout' ? output.jsonTexts(created).join('\n') : plainLine(plaintext),
    )
  } catch (error) {
    throw new CommandFailed(
      `key ${plainLine(label)} was created, but its token could not be written ${target.location} (${errorCodeOf(error)})`,
      [`wb keys revoke ${keyId} --yes    then create another`],
    )
  }
  if (output.json && target.kind !== 'stdout') output.value(withoutToken)
}

/** Returns lines about a new token: its location, permissions, expiration, and how to use it. */
export function tokenNotes(
  { label, scopes, expiresAt }: ApiKey,
  context: {
    workspace: string
    target: TokenTarget
    url: string | undefined
    authMethods: RuntimeAuthMethods | undefined
    nowMs: number
  },
): string[] {
  const { may, mayNot } = describeScopes(scopes)
  const { target } = context
  const token = target.kind === 'file' ? `$(cat ${shellWord(target.location)})` : '…'
  const runtime = context.url ? `WB_URL=${context.url} ` : ''
  const tokenLocation =
    target.kind === 'stdout'
      ? 'its token is shown only once'
      : `its token is ${target.kind === 'file' ? 'in ' : ''}${target.location}`
  return [
    `  key ${plainLine(label)} of workspace ${plainLine(context.workspace)}; ${tokenLocation}`,
    `    may      ${may.join('; ')}`,
    ...(mayNot.length > 0 ? [`    may not  ${mayNot.join('; ')}`] : []),
    `    works    ${formatLifetime(expiresAt, context.nowMs)}`,
    `    use      ${runtime}WB_API_KEY=${token} wb kb list`,
    ...keysNotAcceptedNote(context.authMethods),
  ]
}

/**
 * Returns a warning if the runtime does not accept API keys. A runtime that does not report its authentication
 * methods is assumed to accept them.
 */
function keysNotAcceptedNote(authMethods: RuntimeAuthMethods | undefined): string[] {
  if (!authMethods || authMethods.modes.apiKey) return []
  return [
    authMethods.isServer
      ? '  ! this runtime does not accept API keys; set auth.mode to apiKey or any, and restart it'
      : '  ! this configuration does not accept API keys; set auth.mode to apiKey or any',
  ]
}
