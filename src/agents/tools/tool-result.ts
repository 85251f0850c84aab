import { cutUnits } from '../../base/cut-units.ts'
import type { ToolResult } from './tool.ts'

/**
 * Maximum length in UTF-16 units of one tool result that is sent to a model.
 *
 * @see docs/tool-servers.md#limits-and-results-of-tool-calls
 */
export const resultCharsMax = 32_000
const truncationNote = `\n[cut off at ${resultCharsMax} characters]`

/** Thrown for a failure that the model can correct or report. The message is sent to the model. */
export class ToolError extends Error {
  override readonly name = 'ToolError'
}

/** Creates the result of a successful call. */
export function successResult(content: string): ToolResult {
  return { content, outcome: 'success' }
}

/**
 * Creates the result of a failed call.
 *
 * @param message  text for the model
 * @param reason   text for the audit trail
 */
export function failureResult(message: string, reason = message): ToolResult {
  return { content: `Error: ${message}`, outcome: 'failure', reason }
}

/** Like {@link cutUnits}, but a text that is cut ends with an ellipsis. */
export function previewText(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${cutUnits(text, charsMax - 1)}…`
}

/** Truncates a result to the maximum length. A truncated result ends with a note. */
export function truncateResult(content: string): string {
  return content.length <= resultCharsMax
    ? content
    : cutUnits(content, resultCharsMax - truncationNote.length) + truncationNote
}

/** Returns a result as JSON, with as many of the entries as fit into the maximum length. */
export function fitEntries<T>(entries: readonly T[], result: (included: readonly T[]) => object): string {
  for (let count = entries.length; ; count--) {
    const text = JSON.stringify(result(entries.slice(0, count)))
    if (text.length <= resultCharsMax || count === 0) return text
  }
}
