import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { WbError } from '../../contract/errors.ts'
import { type ProviderFetch, ProviderUnavailable } from './provider-fetch.ts'

/**
 * Age in milliseconds after which keys are reloaded, so that keys that the provider has removed are no longer accepted.
 *
 * @see docs/security.md#rule-11
 */
const reloadAfterMs = 10 * 60_000
/**
 * Maximum age of keys that cannot be reloaded, in milliseconds. If the provider is unavailable, users stay signed in
 * until the keys reach this age.
 */
const usableMaxMs = 24 * 60 * 60_000
/**
 * Minimum time between two reloads for unknown key IDs, in milliseconds. Without it, anyone could trigger
 * reloads by sending tokens with unknown key IDs.
 */
const unknownIdPauseMs = 30_000
/** Pause after a failed load, in milliseconds, if older keys are still usable. */
const retryPauseMs = 30_000
/** Pause after a failed load, in milliseconds, if no keys are usable. */
const noKeysPauseMs = 1_000

/** The keys of a provider, as returned by one load. */
export interface PublishedKeys {
  /** Increases with each load. */
  readonly generation: number
  readonly find: JWTVerifyGetKey
}

interface LoadedKeys extends PublishedKeys {
  readonly loadedAt: number
  readonly ids: ReadonlySet<unknown>
}

/**
 * The published keys of a provider. They are loaded when the first token needs them.
 *
 * @see docs/requirements.md#S5.3-03
 */
export class KeySet {
  #keys: LoadedKeys | undefined
  #loading: Promise<LoadedKeys> | undefined
  #generation = 0
  #failedAt = Number.NEGATIVE_INFINITY
  /** Time of the last reload for an unknown key ID. */
  #unknownIdReloadAt = Number.NEGATIVE_INFINITY

  constructor(
    private readonly deps: {
      /** Returns the URL of the keys. */
      url(): Promise<URL>
      fetchProvider: ProviderFetch
      clock: Clock
      log: Log
    },
  ) {}

  /**
   * Returns the keys to verify a token with. Reloads them first if the token's key ID is unknown.
   *
   * @param id  `kid` of the token
   * @throws identity_provider_unavailable  when the keys cannot be loaded
   */
  async keysFor(id: string | undefined): Promise<PublishedKeys> {
    const keys = await this.#current()
    if (id === undefined || keys.ids.has(id)) return keys
    if (this.#loading) return this.#loading
    const now = this.deps.clock.now()
    if (now - this.#unknownIdReloadAt >= unknownIdPauseMs) {
      this.#unknownIdReloadAt = now
      return this.#load()
    }
    // The last load for an unknown key ID failed, so the provider may have published this key.
    if (this.#failedAt >= this.#unknownIdReloadAt) throw keysUnavailable()
    return keys
  }

  async #current(): Promise<LoadedKeys> {
    const now = this.deps.clock.now()
    const keys = this.#keys
    const age = keys ? now - keys.loadedAt : Number.POSITIVE_INFINITY
    if (keys && age < reloadAfterMs) return keys
    if (keys && age < usableMaxMs) {
      if (this.#failedAt < keys.loadedAt) return this.#load().catch(() => keys)
      if (now - this.#failedAt >= retryPauseMs) this.#load().catch(() => undefined)
      return keys
    }
    if (now - this.#failedAt < noKeysPauseMs) throw keysUnavailable()
    return this.#load()
  }

  /** Loads the keys, unless a load is in progress. */
  #load(): Promise<LoadedKeys> {
    this.#loading ??= this.#fetchKeys().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  async #fetchKeys(): Promise<LoadedKeys> {
    const { url, fetchProvider, clock, log } = this.deps
    try {
      const response = await fetchProvider(await url(), { headers: { accept: 'application/json' } })
      if (response.status !== 200)
        throw new ProviderUnavailable(`it responded with status ${response.status}`)
      const { find, ids } = await keysIn(response)
      this.#keys = { generation: ++this.#generation, loadedAt: clock.now(), find, ids }
      return this.#keys
    } catch (error) {
      this.#failedAt = clock.now()
      log.warn({ why: loadFailureReason(error) }, 'the keys of the identity provider could not be loaded')
      throw keysUnavailable()
    }
  }
}

async function keysIn(response: Response): Promise<Pick<LoadedKeys, 'find' | 'ids'>> {
  try {
    const find = createLocalJWKSet((await response.json()) as JSONWebKeySet)
    return { find, ids: new Set(find.jwks().keys.map(key => key.kid)) }
  } catch {
    throw new ProviderUnavailable('its response is not a key set')
  }
}

/** Returns the reason for a failed load, which can be a failed discovery. */
function loadFailureReason(error: unknown): unknown {
  return error instanceof WbError ? error.facts.why : (error as Error).message
}

function keysUnavailable(): WbError {
  return new WbError(
    'identity_provider_unavailable',
    'the token cannot be checked: the keys of the identity provider are unavailable',
  )
}
