import { createHash } from 'node:crypto'

/**
 * `sha256:` and 64 hexadecimal digits of a JSON value; the order of keys does not matter.
 *
 * @throws RangeError  it is nested deeper than the stack is
 */
export function fingerprint(value: unknown): string {
  return `sha256:${createHash('sha256')
    .update(JSON.stringify(inOrder(value)))
    .digest('hex')}`
}

/** The same value with its keys in the order of their code units. */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, entry]) => [key, inOrder(entry)] as const)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}
