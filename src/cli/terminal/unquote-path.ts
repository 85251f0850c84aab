import { type Environment, homeFolder } from '../environment.ts'

/**
 * Returns the path that a person typed or dropped where no shell reads it: without quotes around it, without backslashes
 * before blanks, and with the home folder in place of `~` at its beginning.
 */
export function unquotePath(env: Environment, typed: string): string {
  const quoted = /^(["'])(.+)\1$/.exec(typed)?.[2]
  const path = quoted ?? typed.replaceAll('\\ ', ' ')
  return /^~(?=$|[/\\])/.test(path) ? homeFolder(env) + path.slice(1) : path
}
