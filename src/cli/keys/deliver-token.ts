import { shellWord } from '../../base/shell-word.ts'
import type { ApiKey } from '../../contract/keys.ts'
import type { RuntimeAuthMethods } from '../connection/auth-methods.ts'
import { CommandFailed } from '../errors.ts'
import { formatLifetime } from '../terminal/duration.ts'
import type { Output } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { describeScopes } from './describe-scopes.ts'
import { errorCodeOf, type TokenTarget } from './token-target.ts'

/** A key and its token, as returned by the API. */
interface CreatedKey {
  readonly plaintext: string
  readonly key: ApiKey
}

/**
 * Writes the token of a new key to its target.
 *
 * @throws PartlyFailed  when the key was created but its token could not be written
 */
export async function deliverToken(target: TokenTarget, output: Output, minted: CreatedKey): Promise<void> {
  const { plaintext, ...rest } = minted
  const { keyId, label } = minted.key
  try {
    await target.write(
      output.json && target.kind === 'stdout' ? output.jsonTexts(minted).join('\n') : plainLine(plaintext),
    )
  } catch (error) {
    throw new CommandFailed(
      `key ${plainLine(label)} was created, but its token could not be written ${target.place} (${errorCodeOf(error)})`,
      [`wb keys revoke ${keyId} --yes    then create another`],
    )
  }
  if (output.json && target.kind !== 'stdout') output.value(rest)
}

/** Describes a new token: location, permissions, expiration and usage. */
export function tokenNotes(
  { label, scopes, expiresAt }: ApiKey,
  about: {
    workspace: string
    target: TokenTarget
    url: string | undefined
    ways: RuntimeAuthMethods | undefined
    nowMs: number
  },
): string[] {
  const { may, mayNot } = describeScopes(scopes)
  const { target } = about
  const token = target.kind === 'file' ? `$(cat ${shellWord(target.place)})` : '…'
  const runtime = about.url ? `WB_URL=${about.url} ` : ''
  const where =
    target.kind === 'stdout'
      ? 'its token is shown only once'
      : `its token is ${target.kind === 'file' ? 'in ' : ''}${target.place}`
  return [
    `  key ${plainLine(label)} of workspace ${plainLine(about.workspace)}; ${where}`,
    `    may      ${may.join('; ')}`,
    ...(mayNot.length > 0 ? [`    may not  ${mayNot.join('; ')}`] : []),
    `    works    ${formatLifetime(expiresAt, about.nowMs)}`,
    `    use      ${runtime}WB_API_KEY=${token} wb kb list`,
    ...keysNotAcceptedNote(about.ways),
  ]
}

/**
 * Returns a warning if the runtime does not check API keys. Runtimes that do not report it are assumed to
 * check them.
 */
function keysNotAcceptedNote(ways: RuntimeAuthMethods | undefined): string[] {
  if (!ways || ways.modes.apiKey) return []
  return [
    ways.isServer
      ? '  ! this runtime does not accept API keys; set auth.mode to apiKey or any'
      : '  ! this configuration does not accept API keys; set auth.mode to apiKey or any',
  ]
}
