import type { Clock } from '../../base/clock.ts'
import { reportOf } from '../../cli/command/report.ts'
import { plainLine } from '../../cli/terminal/terminal-text.ts'
import { isUnavailable } from '../parts/is-unavailable.ts'
import type { PlaygroundPort } from './port.ts'
import { type PlaygroundStart, startPlayground, stepPlayground } from './state.ts'
import type {
  PlaygroundEffect,
  PlaygroundEvent,
  PlaygroundFailure,
  PlaygroundState,
  PlaygroundStep,
} from './types.ts'

export interface PlaygroundRunnerOptions {
  readonly port: PlaygroundPort
  readonly clock: Clock
  /** Undefined if there is no clipboard program. */
  readonly copy: ((text: string) => Promise<void>) | undefined
  /** Called after each event. */
  onChange(): void
  onRedraw(): void
  onLeave(): void
}

/** Time between two ticks during a search. */
const TICK_MS = 100

/** Runs a playground: applies events to its state, and runs the effects that they cause. */
export class Playground {
  #state: PlaygroundState
  #searching: AbortController | undefined
  #cancelSearch = () => {}
  #cancelTick = () => {}
  #isTicking = false

  constructor(
    start: PlaygroundStart,
    private readonly parts: PlaygroundRunnerOptions,
  ) {
    const [state, effects] = startPlayground(start)
    this.#state = state
    this.#run(effects)
  }

  get state(): PlaygroundState {
    return this.#state
  }

  dispatch(event: PlaygroundEvent): void {
    const [timed] = stepPlayground(this.#state, { type: 'tick', nowMs: this.parts.clock.now() })
    const [state, effects]: PlaygroundStep = stepPlayground(timed, event)
    this.#state = state
    this.#run(effects)
    this.parts.onChange()
  }

  /** Cancels all work. */
  close(): void {
    this.#stop()
    this.#cancelTick()
    this.#isTicking = true
  }

  #run(effects: readonly PlaygroundEffect[]): void {
    for (const effect of effects) this.#runEffect(effect)
    this.#tick()
  }

  #tick(): void {
    if (this.#isTicking || !this.#state.pending) return
    this.#isTicking = true
    this.#cancelTick = this.parts.clock.after(TICK_MS, () => {
      this.#isTicking = false
      this.dispatch({ type: 'tick', nowMs: this.parts.clock.now() })
    })
  }

  #runEffect(effect: PlaygroundEffect): void {
    switch (effect.type) {
      case 'search':
        this.#stop()
        this.#cancelSearch = this.parts.clock.after(effect.delayMs, () => void this.#search(effect))
        break
      case 'stop':
        this.#stop()
        break
      case 'list':
        void this.#loadBases()
        break
      case 'copy':
        void this.#copy(effect.text, effect.what)
        break
      case 'redraw':
        this.parts.onRedraw()
        break
      case 'leave':
        this.parts.onLeave()
    }
  }

  #stop(): void {
    this.#cancelSearch()
    this.#searching?.abort()
  }

  async #search({ serial, request }: Extract<PlaygroundEffect, { type: 'search' }>): Promise<void> {
    const searching = new AbortController()
    this.#searching = searching
    const { signal } = searching
    try {
      const results = await this.parts.port.search(request, signal)
      if (!signal.aborted) this.dispatch({ type: 'searched', serial, results })
    } catch (error) {
      if (!signal.aborted) this.dispatch({ type: 'failed', serial, failure: toPlaygroundFailure(error) })
    }
  }

  /** Updates the list of knowledge bases. If that fails, keeps the old list. */
  async #loadBases(): Promise<void> {
    try {
      this.dispatch({ type: 'listed', bases: await this.parts.port.knowledgeBases() })
    } catch (error) {
      this.dispatch({ type: 'noted', text: toPlaygroundFailure(error).message })
    }
  }

  async #copy(text: string, what: string): Promise<void> {
    const { copy } = this.parts
    if (!copy) return this.dispatch({ type: 'notCopied', text, why: 'no clipboard program was found' })
    try {
      await copy(text)
      this.dispatch({ type: 'noted', text: `copied: ${what}` })
    } catch (error) {
      this.dispatch({ type: 'notCopied', text, why: reportOf(error).message })
    }
  }
}

function toPlaygroundFailure(error: unknown): PlaygroundFailure {
  const { message, code } = reportOf(error)
  return { isUnavailable: isUnavailable(error), code: code && plainLine(code), message: plainLine(message) }
}
