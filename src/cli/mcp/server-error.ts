import { shellWord } from '../../base/shell-word.ts'
import { CommandFailed } from '../errors.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/** Converts the problem of a registered server to an error with commands to try. */
export function serverError(
  label: string,
  { code, message }: { code: string; message: string },
): CommandFailed {
  const name = shellWord(plainLine(label))
  if (code === 'sign_in_required')
    return new CommandFailed(`you are not signed in to MCP server ${plainLine(label)}`, [
      `wb mcp servers login ${name}`,
    ])
  return new CommandFailed(`MCP server ${plainLine(label)}: ${message}`, [
    `wb mcp servers update ${name} --address URL    if its address has changed`,
    `wb mcp servers test ${name}`,
  ])
}
