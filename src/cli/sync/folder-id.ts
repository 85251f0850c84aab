import { hostname } from 'node:os'
import { basename } from 'node:path'
import { sha256 } from '../../base/id.ts'

const nameCharsMax = 60
const digestChars = 8

/**
 * Returns the ID of a folder on this machine: its name, and a hash of the machine and its path. Another folder, or a folder on
 * another machine, has another ID.
 *
 * @param path  absolute path without symbolic links
 */
export function folderIdOf(path: string): string {
  const digest = sha256(JSON.stringify([hostname(), path])).slice(0, digestChars)
  return `${basename(path).slice(0, nameCharsMax) || 'root'}-${digest}`
}
