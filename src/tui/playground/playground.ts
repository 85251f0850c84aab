import type { Clock } from '../../base/clock.ts'
import { toReport } from '../../cli/command/report.ts'
import { plainLine } from '../../cli/terminal/terminal-text.ts'
import { type QuestionJudgment, quotePassage } from '../../evaluation/judgment-file.ts'
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
  /** Stores a judgment, and returns the path of its file. @throws Error  it cannot be written */
  judge(base: string, judgment: QuestionJudgment): string
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
    private readonly options: PlaygroundRunnerOptions,
  ) {
    const [state, effects] = startPlayground(start)
    this.#state = state
    this.#run(effects)
  }

  get state(): PlaygroundState {
    return this.#state
  }

  dispatch(event: PlaygroundEvent): void {
    const [withTime] = stepPlayground(this.#state, { type: 'tick', nowMs: this.options.clock.now() })
    const [state, effects]: PlaygroundStep = stepPlayground(withTime, event)
    this.#state = state
    this.#run(effects)
    this.options.onChange()
  }

  /** Cancels all work. */
  close(): void {
    this.#stop()
    this.#cancelTick()
    this.#isTicking = true // no tick starts after this
  }

  #run(effects: readonly PlaygroundEffect[]): void {
    for (const effect of effects) this.#runEffect(effect)
    this.#tick()
  }

  #tick(): void {
    if (this.#isTicking || !this.#state.pending) return
    this.#isTicking = true
    this.#cancelTick = this.options.clock.after(TICK_MS, () => {
      this.#isTicking = false
      this.dispatch({ type: 'tick', nowMs: this.options.clock.now() })
    })
  }

  #runEffect(effect: PlaygroundEffect): void {
    switch (effect.type) {
      case 'search':
        this.#stop()
        this.#cancelSearch = this.options.clock.after(effect.delayMs, () => void this.#search(effect))
        break
      case 'stop':
        this.#stop()
        break
      case 'list':
        void this.#loadBases()
        break
      case 'copy':
        void this.#copy(effect.text, effect.label)
        break
      case 'judge':
        void this.#judge(effect)
        break
      case 'redraw':
        this.options.onRedraw()
        break
      case 'leave':
        this.options.onLeave()
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
      const results = await this.options.port.search(request, signal)
      if (!signal.aborted) this.dispatch({ type: 'searched', serial, results })
    } catch (error) {
      if (!signal.aborted) this.dispatch({ type: 'failed', serial, failure: toPlaygroundFailure(error) })
    }
  }

  /** Updates the list of knowledge bases. If that fails, keeps the old list. */
  async #loadBases(): Promise<void> {
    try {
      this.dispatch({ type: 'listed', bases: await this.options.port.knowledgeBases() })
    } catch (error) {
      this.dispatch({ type: 'noted', text: toPlaygroundFailure(error).message })
    }
  }

  /** Stores a judgment. A joined passage is judged by its best chunk, because `wb eval` searches for single chunks. */
  async #judge({ base, passage, judgment }: Extract<PlaygroundEffect, { type: 'judge' }>): Promise<void> {
    const { judge, port } = this.options
    try {
      const text = passage.chunks ? quotePassage(await port.chunkText(passage)) : judgment.text
      const path = judge(base, { ...judgment, text })
      this.dispatch({ type: 'noted', text: `grade ${judgment.grade}, saved to ${path}` })
    } catch (error) {
      this.dispatch({ type: 'noted', text: `the grade was not saved: ${toReport(error).message}` })
    }
  }

  async #copy(text: string, label: string): Promise<void> {
    const { copy } = this.options
    if (!copy) return this.dispatch({ type: 'notCopied', text, reason: 'no clipboard program was found' })
    try {
      await copy(text)
      this.dispatch({ type: 'noted', text: `copied: ${label}` })
    } catch (error) {
      this.dispatch({ type: 'notCopied', text, reason: toReport(error).message })
    }
  }
}

function toPlaygroundFailure(error: unknown): PlaygroundFailure {
  const { message, code } = toReport(error)
  return { isUnavailable: isUnavailable(error), code: code && plainLine(code), message: plainLine(message) }
}
