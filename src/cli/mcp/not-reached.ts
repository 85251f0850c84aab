import { PartlyFailed } from '../faults.ts'
import { shellWord } from '../terminal/shell-word.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/** A registered server that was asked and gave no answer, with the line that leads elsewhere. */
export function notReached(label: string, { message }: { message: string }): PartlyFailed {
  const name = shellWord(plainLine(label))
  return new PartlyFailed(`MCP server ${plainLine(label)}: ${message}`, [
    `wb mcp servers update ${name} --address URL    where it is now`,
    `wb mcp servers test ${name}`,
  ])
}
