import { shellWord } from '../../base/shell-word.ts'
import type { ApiKey } from '../../contract/keys.ts'
import type { WaysIn } from '../connection/ways-in.ts'
import { PartlyFailed } from '../faults.ts'
import { lasting } from '../terminal/moment.ts'
import type { Output } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { codeOf, type TokenTarget } from './token-target.ts'
import { keyWords } from './words.ts'

/** A key and its token, as returned by the API. */
interface Minted {
  readonly plaintext: string
  readonly key: ApiKey
}

/**
 * Writes the token of a new key to its target.
 *
 * @throws PartlyFailed  when the key was created but its token could not be written
 */
export async function handOver(target: TokenTarget, output: Output, minted: Minted): Promise<void> {
  const { plaintext, ...rest } = minted
  const { keyId, label } = minted.key
  try {
    await target.put(
      output.json && target.kind === 'stdout' ? output.texts(minted).join('\n') : plainLine(plaintext),
    )
  } catch (error) {
    throw new PartlyFailed(
      `key ${plainLine(label)} was made, and its token did not arrive ${target.place} (${codeOf(error)})`,
      [`wb keys revoke ${keyId} --yes    then make another`],
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
    ways: WaysIn | undefined
    nowMs: number
  },
): string[] {
  const { may, mayNot } = keyWords(scopes)
  const { target } = about
  const token = target.kind === 'file' ? `$(cat ${shellWord(target.place)})` : '…'
  const runtime = about.url ? `WB_URL=${about.url} ` : ''
  const where =
    target.kind === 'stdout'
      ? 'its token is shown this once'
      : `its token is ${target.kind === 'file' ? 'in ' : ''}${target.place}`
  return [
    `  key ${plainLine(label)} of workspace ${plainLine(about.workspace)}; ${where}`,
    `    may      ${may.join('; ')}`,
    ...(mayNot.length > 0 ? [`    may not  ${mayNot.join('; ')}`] : []),
    `    works    ${lasting(expiresAt, about.nowMs)}`,
    `    use      ${runtime}WB_API_KEY=${token} wb kb list`,
    ...unlooked(about.ways),
  ]
}

/**
 * Returns a warning if the runtime does not check API keys. Runtimes that do not report it are assumed to
 * check them.
 */
function unlooked(ways: WaysIn | undefined): string[] {
  if (!ways || ways.modes.apiKey) return []
  return [
    ways.isServer
      ? '  ! this runtime looks at no keys; it does with auth.mode apiKey or any'
      : '  ! as configured here, keys are not checked; auth.mode apiKey or any checks them',
  ]
}
