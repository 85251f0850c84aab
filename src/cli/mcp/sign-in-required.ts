import { parseJson } from '../../base/parse-json.ts'
import { shellWord } from '../../base/shell-word.ts'
import type { Message } from '../../contract/conversations.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/** Returns a line for each MCP server whose tools were unavailable because the user is not signed in to it. */
export function signInLines({ metadata }: Pick<Message, 'metadata'>): string[] {
  return parseLabels(metadata.sign_in_required).map(
    label => `to use the tools of ${label}, sign in with: wb mcp servers login ${shellWord(label)}`,
  )
}

/** Parses a JSON list of labels. Returns an empty list for invalid metadata, because no schema checks it. */
function parseLabels(text = '[]'): string[] {
  const labels = parseJson(text)
  return Array.isArray(labels) ? labels.filter(label => typeof label === 'string').map(plainLine) : []
}
