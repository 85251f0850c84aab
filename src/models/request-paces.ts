import { setTimeout as pause } from 'node:timers/promises'
import { FairLimiter } from '../base/fair-limiter.ts'

/** Maximum number of requests with documents that a service processes at the same time. */
const concurrentRequestsMax = 8
/** Maximum number of services whose pace is kept. Above it, the oldest one is removed. */
const servicesMax = 1_000

/** The pace of the requests to one service. */
export interface RequestPace {
  /**
   * Resolves when the service accepts requests again; at once if that takes longer than `waitMsMax` milliseconds, so that the
   * provider can refuse the request.
   *
   * @throws the reason of the signal
   */
  waitUntilReady(signal: AbortSignal, waitMsMax: number): Promise<void>
  /** Delays all later requests, because the service requested a pause in milliseconds. */
  pauseFor(pauseMs: number): void
}

/**
 * Limits the concurrent requests to each embedding service of this process, and delays all of them if the provider limits
 * their rate.
 */
export class RequestPaces {
  readonly #services = new Map<string, ServicePace>()

  /** Returns the pace of a service, by its workspace and ID. */
  of(serviceKey: string): ServicePace {
    const pace = this.#services.get(serviceKey) ?? new ServicePace()
    this.#services.set(serviceKey, pace)
    const [oldest] = this.#services.keys()
    if (this.#services.size > servicesMax) this.#services.delete(oldest!)
    return pace
  }
}

/** The pace of a service, with a limit of its concurrent requests. */
export class ServicePace implements RequestPace {
  readonly #limiter = new FairLimiter(concurrentRequestsMax)
  #pausedUntilMs = 0

  /** Runs a request when fewer than the maximum number are running. @throws the reason of the signal */
  limit<T>(signal: AbortSignal, request: () => Promise<T>): Promise<T> {
    return this.#limiter.run({ workspaceId: '', member: '', signal }, request)
  }

  async waitUntilReady(signal: AbortSignal, waitMsMax: number): Promise<void> {
    for (;;) {
      const waitMs = this.#pausedUntilMs - performance.now()
      if (waitMs <= 0 || waitMs > waitMsMax) return
      await pause(waitMs, undefined, { signal }).catch(() => signal.throwIfAborted())
    }
  }

  pauseFor(pauseMs: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, performance.now() + pauseMs)
  }
}
