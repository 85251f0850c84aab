import type { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { stopwatch } from '../base/clock.ts'
import { once } from '../base/once.ts'
import type { IngestLoad } from '../contract/runtime-routes.ts'

/** A completed request and its response, for metrics. */
export interface CompletedExchange {
  readonly method: string
  readonly route: string
  readonly status: number
  readonly durationMs: number
}

export type KeyType = 'bearer' | 'session' | 'ip'

/** Metrics in the Prometheus text format, and the media type. */
export interface MetricsText {
  readonly contentType: string
  readonly text: string
}

/** Labels of the metric `workbase_build_info`. */
export interface BuildInfo {
  readonly version: string
  readonly commit: string
}

/** Bucket bounds of the histograms, in seconds. A search of a small knowledge base takes 1 to 3 ms. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Methods that are labels. All others are counted as `other`, because clients can send any method name. */
const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/**
 * Metrics of this process. A server starts counting when it starts. A process that does not report metrics, such as a
 * command, does not count anything, and does not load the metrics library.
 *
 * @see docs/operating.md#monitor-a-server
 */
export class Metrics {
  #meters: Meters | undefined

  /** @param countLostDecisions  returns the number of policy decisions that could not be stored */
  constructor(
    private readonly build: BuildInfo,
    private readonly countLostDecisions: () => number,
  ) {}

  async start(): Promise<void> {
    this.#meters ??= await openMeters(this.build, this.countLostDecisions)
  }

  countExchange({ method, route, status, durationMs }: CompletedExchange): void {
    if (!this.#meters) return
    const labels = {
      method: methods.has(method) ? method : 'other',
      route,
      status: `${Math.floor(status / 100)}xx`,
    }
    this.#meters.requestSeconds.observe(labels, durationMs / 1_000)
  }

  countRateLimited(keyType: KeyType): void {
    this.#meters?.rejections.inc({ key_type: keyType })
  }

  countChat(provider: string, outcome: 'ok' | 'error' | 'interrupted'): void {
    this.#meters?.chats.inc({ provider, outcome })
  }

  countIngest(outcome: 'ok' | 'failed'): void {
    this.#meters?.documents.inc({ outcome })
  }

  /** @param ingest  current load; null if unknown, which reports the previous values */
  async text(ingest: IngestLoad | null): Promise<MetricsText> {
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

  /** Runs a search, and counts it by its mode. A failed search is counted with the mode `none`. */
  async measureSearch<T extends { readonly mode: string }>(search: () => Promise<T>): Promise<T> {
    const elapsedMs = stopwatch()
    let [mode, outcome] = ['none', 'error']
    try {
      const result = await search()
      ;[mode, outcome] = [result.mode, 'ok']
      return result
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
 * Returns the standard metrics of the process. They are created once for all runtimes that the process opens.
 */
const startProcessMeters = once(async () => {
  const { collectDefaultMetrics, Registry } = await loadPrometheus()
  const register = new Registry()
  collectDefaultMetrics({ register })
  // These gauges have names of counters. `nodejs_active_handles`, `nodejs_active_requests` and
  // `nodejs_active_resources` report the same numbers by type.
  for (const suffix of ['handles', 'requests', 'resources'])
    register.removeSingleMetric(`nodejs_active_${suffix}_total`)
  return register
})

async function openMeters({ version, commit }: BuildInfo, countLostDecisions: () => number): Promise<Meters> {
  const { Counter, Gauge, Histogram, Registry } = await loadPrometheus()
  const registry = new Registry()
  const metricOptions = (name: string, help: string) => ({
    name: `workbase_${name}`,
    help,
    registers: [registry],
  })
  const requestLabels = ['method', 'route', 'status'] as const
  const requestSeconds = new Histogram({
    ...metricOptions('http_request_duration_seconds', 'Time until the response starts'),
    labelNames: requestLabels,
    buckets,
  })
  const buildInfo = new Gauge({
    ...metricOptions('build_info', 'Version and commit of the running build; the value is always 1'),
    labelNames: ['version', 'commit', 'node'],
  })
  buildInfo.set({ version, commit, node: process.version }, 1)
  // The counter is derived from the histogram, so that each request is recorded only once.
  new Counter({
    ...metricOptions('http_requests_total', 'Requests'),
    labelNames: requestLabels,
    async collect() {
      this.reset()
      for (const { metricName, labels, value } of (await requestSeconds.get()).values)
        if (metricName?.endsWith('_count')) this.inc(labels, value)
    },
  })
  new Counter({
    ...metricOptions('policy_decisions_lost_total', 'Policy decisions that could not be stored'),
    collect() {
      this.reset()
      this.inc(countLostDecisions())
    },
  })
  return {
    registry,
    processRegistry: await startProcessMeters(),
    requestSeconds,
    rejections: new Counter({
      ...metricOptions(
        'rate_limit_rejections_total',
        'Requests that exceeded the rate limit, by credential type',
      ),
      labelNames: ['key_type'],
    }),
    active: new Gauge(metricOptions('ingest_workers_active', 'Running ingest jobs')),
    queued: new Gauge(metricOptions('ingest_workers_queued', 'Waiting ingest jobs')),
    documents: new Counter({
      ...metricOptions('ingest_documents_total', 'Documents for which an ingest job has ended'),
      labelNames: ['outcome'],
    }),
    searches: new Counter({
      ...metricOptions('search_requests_total', 'Searches, by mode'),
      labelNames: ['mode', 'outcome'],
    }),
    searchSeconds: new Histogram({
      ...metricOptions('search_duration_seconds', 'Duration of a search'),
      labelNames: ['mode'],
      buckets,
    }),
    chats: new Counter({
      ...metricOptions('chat_requests_total', 'Messages to agents, by model provider'),
      labelNames: ['provider', 'outcome'],
    }),
  }
}
