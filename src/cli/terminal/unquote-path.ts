import { type Environment, homeFolder } from '../environment.ts'

/**
 * Returns a path that was typed or dropped into a prompt: without quotes and escaped spaces, and with `~`
 * replaced by the home folder.
 */
export function unquotePath(env: Environment, typed: string): string {
  const quoted = /^(["'])(.+)\1$/.exec(typed)?.[2]
  const path = quoted ?? typed.replaceAll('\\ ', ' ')
  return /^~(?=$|[/\\])/.test(path) ? homeFolder(env) + path.slice(1) : path
}
