import type { Clock } from '../../base/clock.ts'
import type { Key } from '../parts/keys.ts'
import { type Paint, paintFor } from '../parts/paint.ts'
import { type Terminal, TerminalSession, terminalSize } from '../parts/terminal-session.ts'
import { PlaygroundApp } from './app.tsx'
import { equivalentCommand } from './equivalents.ts'
import { Playground, type PlaygroundRunnerOptions } from './playground.ts'
import type { PlaygroundPort } from './port.ts'
import { requestOf } from './request.ts'
import type { PlaygroundStart } from './state.ts'

export interface PlaygroundOptions {
  readonly port: PlaygroundPort
  readonly clock: Clock
  readonly terminal: Terminal
  /** Undefined if there is no clipboard program. */
  readonly copy: ((text: string) => Promise<void>) | undefined
  readonly judge: PlaygroundRunnerOptions['judge']
  readonly hasColors: boolean
  readonly start: Omit<PlaygroundStart, 'size' | 'nowMs'>
  /** Ends the playground when it fires. */
  readonly signal: AbortSignal
}

/**
 * Runs a playground until the user leaves: a search whose results appear while the user types.
 *
 * @returns the text that could not be copied, or else the equivalent shell command; undefined without a question
 */
export async function playInTerminal(options: PlaygroundOptions): Promise<string | undefined> {
  return new TerminalPlayground(options).run()
}

class TerminalPlayground {
  readonly #playground: Playground
  readonly #session: TerminalSession
  readonly #paint: Paint
  #end = () => {}

  constructor(private readonly options: PlaygroundOptions) {
    const { port, clock, copy, judge, hasColors, start, terminal, signal } = options
    this.#paint = paintFor(hasColors)
    this.#session = new TerminalSession(terminal, {
      hasColors,
      signal,
      onResize: () => this.#redraw(),
      onEnd: () => this.#end(),
    })
    this.#playground = new Playground(
      { ...start, size: terminalSize(terminal), nowMs: clock.now() },
      {
        port,
        clock,
        copy,
        judge,
        onChange: () => this.#draw(),
        onRedraw: () => this.#redraw(),
        onLeave: () => this.#end(),
      },
    )
  }

  async run(): Promise<string | undefined> {
    const ended = new Promise<void>(done => {
      this.#end = done
    })
    this.#session.open()
    this.#session.showAlternateScreen(true)
    try {
      this.#draw()
      await ended
    } finally {
      this.#playground.close()
      this.#session.close()
    }
    const { state } = this.#playground
    const request = requestOf(state)
    return state.uncopiedText ?? (request && equivalentCommand(state, request))
  }

  readonly #onKey = (key: Key) => this.#playground.dispatch(key)

  #draw(): void {
    const { state } = this.#playground
    this.#session.draw(
      <PlaygroundApp state={state} paint={this.#paint} clock={this.options.clock} onKey={this.#onKey} />,
    )
  }

  /** Redraws the whole screen, because the terminal may have rewrapped its rows. */
  #redraw(): void {
    const size = terminalSize(this.options.terminal)
    this.#session.writeTogether(() => {
      this.#session.hide()
      this.#session.eraseFrom(size.rows)
      this.#playground.dispatch({ type: 'resized', size })
    })
  }
}
