import { sha256 } from './id.ts'

/** Hash before the first line. */
export const chainStart = sha256('')

/** Returns the hash of a sequence of lines, from the hash of all lines before the last one. */
export function chainHash(previous: string, line: string): string {
  return sha256(`${previous}\n${line}`)
}
