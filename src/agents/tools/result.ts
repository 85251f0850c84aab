import type { ToolResult } from './tool.ts'

/** Maximum length of one result that is sent to a model, in UTF-16 units. @see docs/tool-servers.md#what-a-call-may-do */
export const resultCharsMax = 32_000
const cutMark = `\n[cut off at ${resultCharsMax} characters]`

/** What a model got wrong, or what is not there for it, in words for it. */
export class ToolError extends Error {
  override readonly name = 'ToolError'
}

/** What a tool gave. */
export function success(content: string): ToolResult {
  return { content, outcome: 'success' }
}

/** @param message  for the model */
export function failure(message: string, reason = message): ToolResult {
  return { content: `Error: ${message}`, outcome: 'failure', reason }
}

/** The first part of a text, which ends between two characters. */
export function cut(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text
  const isSplit = /[\uD800-\uDBFF]/.test(text[charsMax - 1]!)
  return text.slice(0, isSplit ? charsMax - 1 : charsMax)
}

/** The same, which says that it is one. */
export function preview(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${cut(text, charsMax - 1)}…`
}

/** A result that is not longer than it may be, and says when it was. */
export function bounded(content: string): string {
  return content.length <= resultCharsMax ? content : cut(content, resultCharsMax - cutMark.length) + cutMark
}

/** JSON of a result, with as many of its entries as fit. */
export function fitted<T>(entries: readonly T[], result: (kept: readonly T[]) => object): string {
  for (let count = entries.length; ; count--) {
    const text = JSON.stringify(result(entries.slice(0, count)))
    if (text.length <= resultCharsMax || count === 0) return text
  }
}
