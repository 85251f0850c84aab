import { shellWord } from '../../base/shell-word.ts'
import { type AddressFrom, type Meant, withoutEnd } from '../settings/address.ts'

/** A command line as it was typed. */
export interface Typed {
  /** Command without arguments: `wb kb list`. */
  readonly spoken: string
  readonly argv: readonly string[]
  /** True if the command line contains no secret and may be shown again. */
  readonly mayRepeat: boolean
}

/**
 * Returns the command line with another address; only the changed part if the whole must not be shown.
 *
 * @param from  source of the wrong address
 */
export function retyped(
  { spoken, argv, mayRepeat }: Typed,
  { address, from }: { address: string; from: AddressFrom | undefined },
  { url, flag }: Meant,
): string {
  const after = flag === undefined ? '' : ` ${flag}    if you trust every network on the way`
  const variable = from === '--url' || url === address ? '' : `WB_URL=${shellWord(url)} `
  if (!mayRepeat) return `${variable || `--url ${shellWord(url)}`}${after}`.trim()
  const words = argv.map(word => shellWord(withAddress(word, address, url)))
  return `${variable}${[spoken, ...words].join(' ')}${after}`
}

function withAddress(word: string, address: string, url: string): string {
  if (isSame(word, address)) return url
  return word.startsWith('--url=') && isSame(word.slice('--url='.length), address) ? `--url=${url}` : word
}

/** Returns true if a word is this address. The address is normalized: lowercase host, no trailing slashes. */
function isSame(word: string, address: string): boolean {
  if (word === address) return true
  return URL.canParse(word) && withoutEnd(new URL(word).href) === address
}
