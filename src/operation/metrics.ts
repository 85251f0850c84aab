import type { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { stopwatch } from '../base/clock.ts'
import { once } from '../base/once.ts'
import type { IngestLoad } from '../contract/operational.ts'

/** Facts about one exchange for metrics. */
export interface CompletedExchange {
  readonly method: string
  readonly route: string
  readonly status: number
  readonly durationMs: number
}

export type KeyType = 'bearer' | 'session' | 'ip'

/** Metrics as text, and its media type. */
export interface Exposition {
  readonly contentType: string
  readonly text: string
}

/** Build in the metric `workbase_build_info`. */
export interface BuildInfo {
  readonly version: string
  readonly commit: string
}

/** Bucket bounds of the histograms, in seconds. A search of a small knowledge base takes 1 to 3 ms. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Methods with a separate label. Others are counted as `other`, because clients may send any name. */
const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/**
 * Metrics of this process. A server counts from its start. A process that does not report metrics, such as a
 * command, loads and counts nothing.
 *
 * @see docs/operating.md#monitor-a-server
 */
export class Metrics {
  #meters: Meters | undefined

  constructor(private readonly build: BuildInfo) {}

  async start(): Promise<void> {
    this.#meters ??= await openMeters(this.build)
  }

  answered({ method, route, status, durationMs }: CompletedExchange): void {
    if (!this.#meters) return
    const labels = {
      method: methods.has(method) ? method : 'other',
      route,
      status: `${Math.floor(status / 100)}xx`,
    }
    this.#meters.requestSeconds.observe(labels, durationMs / 1_000)
  }

  limited(keyType: KeyType): void {
    this.#meters?.rejections.inc({ key_type: keyType })
  }

  chatted(provider: string, outcome: 'ok' | 'error' | 'interrupted'): void {
    this.#meters?.chats.inc({ provider, outcome })
  }

  ingested(outcome: 'ok' | 'failed'): void {
    this.#meters?.documents.inc({ outcome })
  }

  /** @param ingest  current load; null if unknown, which keeps the last values */
  async text(ingest: IngestLoad | null): Promise<Exposition> {
    await this.start()
    const { registry, processRegistry, active, queued } = this.#meters!
    if (ingest) {
      active.set(ingest.active)
      queued.set(ingest.queued)
    }
    const { Registry } = await loadPrometheus()
    return {
      contentType: registry.contentType,
      text: await Registry.merge([registry, processRegistry]).metrics(),
    }
  }

  /** Runs a search, and counts it by its mode; the mode of a failed search is `none`. */
  async measureSearch<T extends { readonly mode: string }>(search: () => Promise<T>): Promise<T> {
    const elapsedMs = stopwatch()
    let [mode, outcome] = ['none', 'error']
    try {
      const found = await search()
      ;[mode, outcome] = [found.mode, 'ok']
      return found
    } finally {
      this.#meters?.searches.inc({ mode, outcome })
      this.#meters?.searchSeconds.observe({ mode }, elapsedMs() / 1_000)
    }
  }
}

interface Meters {
  readonly registry: Registry
  readonly processRegistry: Registry
  readonly requestSeconds: Histogram<'method' | 'route' | 'status'>
  readonly rejections: Counter<'key_type'>
  readonly active: Gauge
  readonly queued: Gauge
  readonly documents: Counter<'outcome'>
  readonly searches: Counter<'mode' | 'outcome'>
  readonly searchSeconds: Histogram<'mode'>
  readonly chats: Counter<'provider' | 'outcome'>
}

const loadPrometheus = once(async () => (await import('prom-client')).default)

/**
 * Returns the metrics of the process under their standard names, created once for all runtimes that it opens.
 */
const startProcessMeters = once(async () => {
  const { collectDefaultMetrics, Registry } = await loadPrometheus()
  const register = new Registry()
  collectDefaultMetrics({ register })
  // Gauges named like counters. `nodejs_active_handles`, `_requests` and `_resources` have these counts by
  // type.
  for (const what of ['handles', 'requests', 'resources'])
    register.removeSingleMetric(`nodejs_active_${what}_total`)
  return register
})

async function openMeters({ version, commit }: BuildInfo): Promise<Meters> {
  const { Counter, Gauge, Histogram, Registry } = await loadPrometheus()
  const registry = new Registry()
  const named = (name: string, help: string) => ({ name: `workbase_${name}`, help, registers: [registry] })
  const ofRequests = ['method', 'route', 'status'] as const
  const requestSeconds = new Histogram({
    ...named('http_request_duration_seconds', 'Time until a response begins'),
    labelNames: ofRequests,
    buckets,
  })
  const buildInfo = new Gauge({
    ...named('build_info', 'The build that runs; the value is always 1'),
    labelNames: ['version', 'commit', 'node'],
  })
  buildInfo.set({ version, commit, node: process.version }, 1)
  // Derived from the histogram, so that each request is counted only once.
  new Counter({
    ...named('http_requests_total', 'Requests'),
    labelNames: ofRequests,
    async collect() {
      this.reset()
      for (const { metricName, labels, value } of (await requestSeconds.get()).values)
        if (metricName?.endsWith('_count')) this.inc(labels, value)
    },
  })
  return {
    registry,
    processRegistry: await startProcessMeters(),
    requestSeconds,
    rejections: new Counter({
      ...named('rate_limit_rejections_total', 'Requests over the rate limit, by what they presented'),
      labelNames: ['key_type'],
    }),
    active: new Gauge(named('ingest_workers_active', 'Ingest jobs that are worked on')),
    queued: new Gauge(named('ingest_workers_queued', 'Ingest jobs that wait')),
    documents: new Counter({
      ...named('ingest_documents_total', 'Documents that the ingest worker has ended'),
      labelNames: ['outcome'],
    }),
    searches: new Counter({
      ...named('search_requests_total', 'Searches, by the mode that they used'),
      labelNames: ['mode', 'outcome'],
    }),
    searchSeconds: new Histogram({
      ...named('search_duration_seconds', 'Time of a search'),
      labelNames: ['mode'],
      buckets,
    }),
    chats: new Counter({
      ...named('chat_requests_total', 'Messages that agents were sent, by the provider of the model'),
      labelNames: ['provider', 'outcome'],
    }),
  }
}
