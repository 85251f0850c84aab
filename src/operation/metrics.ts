import type { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Handlers } from '../access/caller.ts'
import type { kb } from '../contract/knowledge.ts'
import type { IngestLoad } from '../contract/operational.ts'

/** One exchange, for the counts. */
export interface Counted {
  readonly method: string
  readonly route: string
  readonly status: number
  readonly durationMs: number
}

export type KeyType = 'bearer' | 'session' | 'ip'

/** A text of counts, and its media type. */
export interface Exposition {
  readonly contentType: string
  readonly text: string
}

type Searching = Pick<Handlers<typeof kb>, 'search' | 'searchMany'>

/** Any other method is counted as `other`: a client may invent them. */
const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/**
 * What this process did, in numbers. A process that nobody asks for them, such as a command, loads nothing and counts
 * nothing; a server counts from its start.
 *
 * @see docs/operating.md#how-it-is-doing
 */
export class Metrics {
  #meters: Meters | undefined

  /** Count from now on. */
  async start(): Promise<void> {
    this.#meters ??= await openMeters()
  }

  answered({ method, route, status, durationMs }: Counted): void {
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

  /** The same handlers, whose searches are counted; the mode is what the request says. */
  ofSearches<H extends Searching>(handlers: H): H {
    const { search, searchMany } = handlers
    return {
      ...handlers,
      search: (input, caller) => this.#timed(input.body, async () => search(input, caller)),
      searchMany: (input, caller) => this.#timed(input.body, async () => searchMany(input, caller)),
    }
  }

  /** @param ingest  null where it is not known: what was known last stands */
  async text(ingest: IngestLoad | null): Promise<Exposition> {
    await this.start()
    const { registry, active, queued } = this.#meters!
    if (ingest) {
      active.set(ingest.active)
      queued.set(ingest.queued)
    }
    return { contentType: registry.contentType, text: await registry.metrics() }
  }

  async #timed<T>(
    { hybrid, rerank }: { hybrid?: boolean | undefined; rerank?: boolean | undefined },
    work: () => Promise<T>,
  ): Promise<T> {
    const mode = `${hybrid ? 'hybrid' : 'vector'}${rerank ? '_rerank' : ''}`
    const ended = this.#meters?.searchSeconds.startTimer({ mode })
    let outcome = 'error'
    try {
      const result = await work()
      outcome = 'ok'
      return result
    } finally {
      ended?.()
      this.#meters?.searches.inc({ mode, outcome })
    }
  }
}

interface Meters {
  readonly registry: Registry
  readonly requestSeconds: Histogram<'method' | 'route' | 'status'>
  readonly rejections: Counter<'key_type'>
  readonly active: Gauge
  readonly queued: Gauge
  readonly documents: Counter<'outcome'>
  readonly searches: Counter<'mode' | 'outcome'>
  readonly searchSeconds: Histogram<'mode'>
  readonly chats: Counter<'provider' | 'outcome'>
}

/** A registry of their own, without what the library would add about the process. */
async function openMeters(): Promise<Meters> {
  const { Counter, Gauge, Histogram, Registry } = (await import('prom-client')).default
  const registry = new Registry()
  const named = (name: string, help: string) => ({ name: `workbase_${name}`, help, registers: [registry] })
  const ofRequests = ['method', 'route', 'status'] as const
  const requestSeconds = new Histogram({
    ...named('http_request_duration_seconds', 'Time until a response begins'),
    labelNames: ofRequests,
  })
  // The histogram has counted them already: a request is to be counted once.
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
      ...named('search_requests_total', 'Searches, by what the request asks for'),
      labelNames: ['mode', 'outcome'],
    }),
    searchSeconds: new Histogram({
      ...named('search_duration_seconds', 'Time of a search'),
      labelNames: ['mode'],
    }),
    chats: new Counter({
      ...named('chat_requests_total', 'Messages that agents were sent, by the provider of the model'),
      labelNames: ['provider', 'outcome'],
    }),
  }
}
