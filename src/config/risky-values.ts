import { formatKey, leavesOf } from './key-path.ts'

/**
 * Keys that do not send data, run programs or affect access. All other keys are treated as risky, including keys that
 * are added to the schema later.
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
  'runtime.audit.decisionRetentionDays',
  'runtime.audit.decisionsMax',
  'runtime.queryLog.retentionDays',
  'runtime.queryLog.searchesMax',
  'runtime.jobs.retentionDays',
  'runtime.maxConcurrentIngestJobs',
  'runtime.tracing.serviceName',
  'chat.model',
  'chat.maxOutputTokens',
  'chat.requestTimeoutMs',
  'chat.retrievalK',
  'chat.checkAnswers',
  'chat.tools.fetch.timeoutMs',
  'chat.tools.fetch.maxResponseBytes',
  'chat.tools.webSearch.timeoutMs',
  'chat.tools.webSearch.maxResults',
  'chat.tools.mcp.discoveryTtlMs',
] as const

/** Values that could send data or run programs, as JSON, by key. */
export type RiskyValues = Readonly<Record<string, string>>

/**
 * Returns the values in a `workbase.yaml` that could send data or run programs. Placeholders are not expanded.
 * A value with a placeholder is always risky, because it can contain any variable.
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
