import { type Environment, homeFolder } from '../environment.ts'

/**
 * Returns the path that the user typed or dropped into a prompt: without quotes and backslashes before spaces,
 * and with `~` replaced with the home folder.
 */
export function unquotePath(env: Environment, typed: string): string {
  const quoted = /^(["'])(.+)\1$/.exec(typed)?.[2]
  const path = quoted ?? typed.replaceAll('\\ ', ' ')
  return /^~(?=$|[/\\])/.test(path) ? homeFolder(env) + path.slice(1) : path
}
