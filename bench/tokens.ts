import { randomInt } from 'node:crypto'

const alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'
const prefixChars = 12
const secretChars = 32

function letters(count: number): string {
  return Array.from({ length: count }, () => alphabet[randomInt(alphabet.length)]).join('')
}

/** Returns the public part of a token. */
export function prefixOf(token: string): string {
  return token.split('_')[2]!
}

/** Returns a new invalid token, by default with an unknown prefix. */
export function wrongToken(prefix = letters(prefixChars)): string {
  return `wb_live_${prefix}_${letters(secretChars)}`
}
