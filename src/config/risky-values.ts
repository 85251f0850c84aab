import { formatKey, leavesOf } from './key-path.ts'

/**
 * Keys that send or run nothing, and do not affect who may call. All other keys count as risky, so a new key
 * needs confirmation until it is reviewed.
 */
export const harmlessKeys = [
  'version',
  'runtime.port',
  'runtime.logLevel',
  'runtime.requestIdHeader',
  'runtime.replicaId',
  'runtime.rateLimit.enabled',
  'runtime.rateLimit.capacity',
  'runtime.rateLimit.authCapacity',
  'runtime.rateLimit.windowMs',
  'runtime.audit.retentionDays',
  'runtime.jobs.retentionDays',
  'runtime.maxConcurrentIngestJobs',
  'runtime.tracing.serviceName',
  'chat.model',
  'chat.maxOutputTokens',
  'chat.requestTimeoutMs',
  'chat.retrievalK',
  'chat.tools.fetch.timeoutMs',
  'chat.tools.fetch.maxResponseBytes',
  'chat.tools.webSearch.timeoutMs',
  'chat.tools.webSearch.maxResults',
  'chat.tools.mcp.discoveryTtlMs',
] as const

/** Values as JSON, by key. */
export type RiskyValues = Readonly<Record<string, string>>

/**
 * Returns the values of a `workbase.yaml` that could send data or run something, before placeholders are
 * expanded. A placeholder can contain any variable, so a value with one is always risky.
 *
 * @see docs/security.md#rule-6
 */
export function riskyValues(tree: unknown): RiskyValues {
  const harmless: readonly string[] = harmlessKeys
  const values = [...leavesOf(tree)].map(
    ({ path, value }) => [formatKey(path), JSON.stringify(value) ?? 'null'] as const,
  )
  return Object.fromEntries(values.filter(([key, value]) => !harmless.includes(key) || value.includes('${')))
}
