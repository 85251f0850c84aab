import { shellWord } from '../../base/shell-word.ts'
import { type AddressSource, type SuggestedAddress, trimTrailingSlashes } from '../settings/address.ts'

/** A command line as it was typed. */
export interface CommandLine {
  /** Command without arguments: `wb kb list`. */
  readonly name: string
  readonly argv: readonly string[]
  /** True if the command line contains no secret and may be shown again. */
  readonly isSafeToRepeat: boolean
}

/**
 * Returns the command line with a corrected address, or only the changed part if the command line must not be shown.
 *
 * @param source  source of the wrong address
 */
export function withAddressReplaced(
  { name, argv, isSafeToRepeat }: CommandLine,
  { address, source }: { address: string; source: AddressSource | undefined },
  { url, flag }: SuggestedAddress,
): string {
  const flagSuffix = flag === undefined ? '' : ` ${flag}    if you trust the network`
  const assignment = source === '--url' || url === address ? '' : `WB_URL=${shellWord(url)} `
  if (!isSafeToRepeat) return `${assignment || `--url ${shellWord(url)}`}${flagSuffix}`.trim()
  const words = argv.map(word => shellWord(replaceAddress(word, address, url)))
  return `${assignment}${[name, ...words].join(' ')}${flagSuffix}`
}

function replaceAddress(word: string, address: string, url: string): string {
  if (isSameAddress(word, address)) return url
  return word.startsWith('--url=') && isSameAddress(word.slice('--url='.length), address)
    ? `--url=${url}`
    : word
}

/**
 * Returns true if a word is the address.
 *
 * @param address  normalized address: lowercase host, no trailing slashes
 */
function isSameAddress(word: string, address: string): boolean {
  if (word === address) return true
  return URL.canParse(word) && trimTrailingSlashes(new URL(word).href) === address
}
