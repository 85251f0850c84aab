import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { WbError } from '../../contract/errors.ts'
import { type Ask, NoAnswer } from './ask.ts'

/** From this age on keys are loaded again, so that a withdrawn one stops. @see docs/security.md#rule-11 */
const freshMs = 10 * 60_000
/** Keys that cannot be loaded again hold this long, so that a provider that is down signs nobody out. */
const staleMs = 24 * 60 * 60_000
/** Pause between two loads that tokens with an unknown key ask for, as anybody can write such a token. */
const unknownPauseMs = 30_000
/** Pause after a load that failed, while there are keys to go on with. */
const retryPauseMs = 30_000
/** The same while there are none. */
const emptyPauseMs = 1_000

/** Keys as they were published at one time. */
export interface Keys {
  /** Another number with each load. */
  readonly generation: number
  readonly find: JWTVerifyGetKey
}

interface Held extends Keys {
  readonly loadedAt: number
  readonly ids: ReadonlySet<unknown>
}

/** The published keys of a provider, loaded when the first token asks for them. @see docs/requirements.md#S5.3-03 */
export class KeySet {
  #held: Held | undefined
  #loading: Promise<Held> | undefined
  #generation = 0
  #failedAt = Number.NEGATIVE_INFINITY
  #unknownAt = Number.NEGATIVE_INFINITY

  constructor(
    private readonly parts: {
      /** Where they are published. */
      url(): Promise<URL>
      ask: Ask
      clock: Clock
      log: Log
    },
  ) {}

  /**
   * The keys to check a token with, loaded again when the one that it names is not among them.
   *
   * @param id  `kid` of the token
   * @throws identity_provider_unavailable  they cannot be had
   */
  async holding(id: string | undefined): Promise<Keys> {
    const held = await this.#current()
    if (id === undefined || held.ids.has(id)) return held
    if (this.#loading) return this.#loading
    const now = this.parts.clock.now()
    if (now - this.#unknownAt >= unknownPauseMs) {
      this.#unknownAt = now
      return this.#load()
    }
    // Whether the provider has that key is not known.
    if (this.#failedAt >= this.#unknownAt) throw unavailable()
    return held
  }

  async #current(): Promise<Held> {
    const now = this.parts.clock.now()
    const held = this.#held
    const age = held ? now - held.loadedAt : Number.POSITIVE_INFINITY
    if (held && age < freshMs) return held
    if (held && age < staleMs) {
      if (this.#failedAt < held.loadedAt) return this.#load().catch(() => held)
      if (now - this.#failedAt >= retryPauseMs) this.#load().catch(() => undefined)
      return held
    }
    if (now - this.#failedAt < emptyPauseMs) throw unavailable()
    return this.#load()
  }

  /** One load at a time. */
  #load(): Promise<Held> {
    this.#loading ??= this.#loaded().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  async #loaded(): Promise<Held> {
    const { url, ask, clock, log } = this.parts
    try {
      const answer = await ask(await url(), { headers: { accept: 'application/json' } })
      if (answer.status !== 200) throw new NoAnswer(`it answered with status ${answer.status}`)
      const { find, ids } = await keysIn(answer)
      this.#held = { generation: ++this.#generation, loadedAt: clock.now(), find, ids }
      return this.#held
    } catch (error) {
      this.#failedAt = clock.now()
      log.warn({ why: whyOf(error) }, 'the keys of the identity provider could not be loaded')
      throw unavailable()
    }
  }
}

async function keysIn(answer: Response): Promise<Pick<Held, 'find' | 'ids'>> {
  try {
    const find = createLocalJWKSet((await answer.json()) as JSONWebKeySet)
    return { find, ids: new Set(find.jwks().keys.map(key => key.kid)) }
  } catch {
    throw new NoAnswer('its answer is not a key set')
  }
}

/** The provider itself may not have been found. */
function whyOf(error: unknown): unknown {
  return error instanceof WbError ? error.facts.why : (error as Error).message
}

function unavailable(): WbError {
  return new WbError(
    'identity_provider_unavailable',
    'the token cannot be checked: the keys of the identity provider are unavailable',
  )
}
