import { createHash } from 'node:crypto'

/**
 * Returns a hash of a JSON value: `sha256:` and 64 hexadecimal digits. The order of keys does not matter.
 *
 * @throws RangeError  the value is nested too deeply for the stack
 */
export function fingerprintJson(value: unknown): string {
  return `sha256:${createHash('sha256')
    .update(JSON.stringify(sortKeys(value)))
    .digest('hex')}`
}

/** Returns a copy of the value with its keys sorted by code unit. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, entry]) => [key, sortKeys(entry)] as const)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}
