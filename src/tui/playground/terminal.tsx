import { type Instance, render, Text, useCursor } from 'ink'
import type { Clock } from '../../base/clock.ts'
import { hold } from '../parts/hold.ts'
import { KeyReader } from '../parts/key-reader.ts'
import { pasteMarks } from '../parts/keys.ts'
import { type Paint, paintFor } from '../parts/paint.ts'
import { InkScreen, inkOptions, sequences, sizeOf, type Terminal } from '../parts/screen.ts'
import { StandIns } from '../parts/stand-ins.ts'
import { askedOf } from './ask.ts'
import { Playground } from './effects.ts'
import { wbLine } from './equivalents.ts'
import type { PlaygroundPort } from './port.ts'
import type { Beginning } from './state.ts'
import { type Screen, screenOf } from './view.ts'

export interface PlaygroundOptions {
  readonly port: PlaygroundPort
  readonly clock: Clock
  readonly terminal: Pick<Terminal, 'stdin' | 'stdout'>
  /** Absent where no program takes what is copied. */
  readonly copy: ((text: string) => Promise<void>) | undefined
  readonly colour: boolean
  readonly beginning: Omit<Beginning, 'size' | 'nowMs'>
  /** Ends it from outside. */
  readonly signal: AbortSignal
  /** Writes to the terminal, in the signs that it takes. */
  write(text: string): void
}

/**
 * Search as one types, until the person leaves.
 *
 * @returns what finds the same from a shell, or what was to be copied and could not be; undefined where nothing was asked
 */
export async function playInTerminal(options: PlaygroundOptions): Promise<string | undefined> {
  const { stdin, stdout } = options.terminal
  return new PlaygroundScreen({ stdin, stdout, write: options.write }, options).run()
}

class PlaygroundScreen {
  readonly #play: Playground
  readonly #paint: Paint
  readonly #keys: KeyReader
  readonly #standIns = new StandIns()
  #screen: InkScreen
  #ink: Instance | undefined
  #end = () => {}

  constructor(
    private readonly terminal: Terminal,
    private readonly options: PlaygroundOptions,
  ) {
    const { port, clock, copy, colour, beginning } = options
    this.#screen = new InkScreen(terminal, this.#standIns)
    this.#paint = paintFor(colour)
    this.#keys = new KeyReader(clock, key => this.#play.dispatch(key))
    this.#play = new Playground(
      { ...beginning, size: sizeOf(terminal), nowMs: clock.now() },
      {
        port,
        clock,
        copy,
        onChange: () => this.#ink?.rerender(this.#view()),
        onRedraw: () => this.#drawAnew(),
        onLeave: () => this.#end(),
      },
    )
  }

  async run(): Promise<string | undefined> {
    const ended = new Promise<void>(done => {
      this.#end = done
    })
    const held = hold(
      this.terminal,
      {
        onData: text => this.#keys.read(text),
        onResize: () => this.#resized(),
        onEnd: () => this.#end(),
        signal: this.options.signal,
        undo: () => pasteMarks.off + sequences.main + sequences.showCursor,
      },
      sequences.alternate + pasteMarks.on,
    )
    try {
      this.#drawAnew()
      await ended
    } finally {
      held.deafen()
      this.#play.close()
      this.#keys.close()
      this.#letGo()
      held.release()
    }
    const { state } = this.#play
    const asked = askedOf(state)
    return state.kept ?? (asked && wbLine(state, asked))
  }

  #resized(): void {
    this.#play.dispatch({ type: 'resized', size: sizeOf(this.terminal) })
    this.#drawAnew()
  }

  #view() {
    const { lines, cursor } = screenOf(this.#play.state)
    return <PlaygroundView text={this.#standIns.frame(lines.map(this.#paint))} cursor={cursor} />
  }

  /** Whatever the terminal made of what was drawn before goes with it. */
  #drawAnew(): void {
    this.#letGo()
    this.terminal.write(sequences.top + sequences.eraseBelow)
    this.#screen = new InkScreen(this.terminal, this.#standIns)
    this.#ink = render(this.#view(), inkOptions(this.#screen, this.terminal))
  }

  /** Nothing that Ink says from now on is seen. */
  #letGo(): void {
    this.#screen.flush()
    this.#screen.isHidden = true
    this.#ink?.unmount()
    this.#ink = undefined
  }
}

/** A frame, in signs that stand for its lines. */
function PlaygroundView({ text, cursor }: { text: string; cursor: Screen['cursor'] }) {
  const { setCursorPosition } = useCursor()
  setCursorPosition(cursor && { ...cursor })
  return <Text wrap="truncate">{text}</Text>
}
