import { shellWord } from '../../base/shell-word.ts'
import { PartlyFailed } from '../faults.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/** Returns the error for a registered server that did not respond, with a command to try. */
export function notReached(
  label: string,
  { code, message }: { code: string; message: string },
): PartlyFailed {
  const name = shellWord(plainLine(label))
  if (code === 'sign_in_required')
    return new PartlyFailed(`you are not signed in to MCP server ${plainLine(label)}`, [
      `wb mcp servers login ${name}`,
    ])
  return new PartlyFailed(`MCP server ${plainLine(label)}: ${message}`, [
    `wb mcp servers update ${name} --address URL    where it is now`,
    `wb mcp servers test ${name}`,
  ])
}
