import { formatKey, leaves } from './key-path.ts'

/**
 * Keys that neither send nor run anything and do not say who may call. Every other key counts as risky, so that one
 * which is new is asked about until somebody looks at it.
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

/** Values by key, as JSON. */
export type Values = Readonly<Record<string, string>>

/**
 * What the tree of a `workbase.yaml` says that could send or run something, before placeholders are expanded. A
 * placeholder can carry any variable, so that no key with one is harmless.
 *
 * @see docs/security.md#rule-6
 */
export function riskyValues(tree: unknown): Values {
  const harmless: readonly string[] = harmlessKeys
  const said = [...leaves(tree)].map(
    ({ path, value }) => [formatKey(path), JSON.stringify(value) ?? 'null'] as const,
  )
  return Object.fromEntries(said.filter(([key, value]) => !harmless.includes(key) || value.includes('${')))
}
