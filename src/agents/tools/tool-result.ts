import type { ToolResult } from './tool.ts'

/**
 * Maximum length of one result for a model, in UTF-16 units.
 *
 * @see docs/tool-servers.md#what-a-call-may-do
 */
export const resultCharsMax = 32_000
const cutMark = `\n[cut off at ${resultCharsMax} characters]`

/** Failure of a call that the model can correct or report. The message is sent to the model. */
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

/** Truncates a text without splitting a surrogate pair. */
export function truncateText(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text
  const isSplit = /[\uD800-\uDBFF]/.test(text[charsMax - 1]!)
  return text.slice(0, isSplit ? charsMax - 1 : charsMax)
}

/** Like {@link truncateText}, but with an ellipsis at the end of a truncated text. */
export function previewText(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${truncateText(text, charsMax - 1)}…`
}

/** Truncates a result to its maximum length, with a note at the end. */
export function boundResult(content: string): string {
  return content.length <= resultCharsMax
    ? content
    : truncateText(content, resultCharsMax - cutMark.length) + cutMark
}

/** Returns a result as JSON, with as many of its entries as fit. */
export function fitEntries<T>(entries: readonly T[], result: (included: readonly T[]) => object): string {
  for (let count = entries.length; ; count--) {
    const text = JSON.stringify(result(entries.slice(0, count)))
    if (text.length <= resultCharsMax || count === 0) return text
  }
}
