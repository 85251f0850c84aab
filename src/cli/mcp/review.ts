import type { McpServerTool, McpServerTools } from '../../contract/mcp-servers.ts'
import { plain, plainJson, plainLine } from '../terminal/terminal-text.ts'

/** The tools that agents are not given before somebody accepts them. */
export function waitingOf({ items }: McpServerTools): McpServerTool[] {
  return items.filter(({ state }) => state === 'new' || state === 'changed')
}

/** What a model would be told of a tool, against what was accepted: lines that go are marked `-`, lines that come `+`. */
export function reviewLines({ name, state, description, acceptedDescription, inputSchema }: McpServerTool) {
  const isSame = description === acceptedDescription
  const before = acceptedDescription === null || isSame ? [] : marked('-', acceptedDescription)
  return [
    `  ${plainLine(name)}  ${state}`,
    ...before,
    ...marked(isSame ? ' ' : '+', description),
    `    takes ${plainJson(inputSchema)}`,
  ]
}

function marked(sign: string, text: string): string[] {
  return plain(text)
    .split('\n')
    .map(line => `    ${sign} ${line}`.trimEnd())
}
