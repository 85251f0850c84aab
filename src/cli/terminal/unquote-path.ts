import { type Environment, homeFolder } from '../environment.ts'

/**
 * Returns the path that the user typed or dropped into a prompt. Removes surrounding quotes, or else backslashes before
 * spaces, and replaces `~` with the home folder.
 */
export function unquotePath(env: Environment, input: string): string {
  const unquoted = /^(["'])(.+)\1$/.exec(input)?.[2]
  const path = unquoted ?? input.replaceAll('\\ ', ' ')
  return /^~(?=$|[/\\])/.test(path) ? homeFolder(env) + path.slice(1) : path
}
