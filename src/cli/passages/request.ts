import { UsageError } from '../faults.ts'

/** How `--mode` maps onto a search request. @see contract: lexical alone */
export const modes = {
  hybrid: { hybrid: true },
  lexical: { hybrid: true, lexicalWeight: 1 },
  vector: { hybrid: false },
} as const

/** @throws UsageError  the flag is not a JSON object */
export function filterOf(flag: string | undefined): Record<string, unknown> | undefined {
  if (flag === undefined) return undefined
  try {
    const value: unknown = JSON.parse(flag)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>
  } catch {
    // told below, as any other value that is no object
  }
  throw new UsageError(`--filter is not a JSON object: ${flag}`, [`--filter '{"lang":"en"}'`])
}
