import { type Instance, render } from 'ink'
import type { FrontOptions } from '../../cli/chat/front.ts'
import type { Highlight } from '../markdown/render.ts'
import { hold } from '../parts/hold.ts'
import { KeyReader } from '../parts/key-reader.ts'
import { pasteMarks } from '../parts/keys.ts'
import { paintFor } from '../parts/paint.ts'
import {
  eraseReflowed,
  InkScreen,
  inkOptions,
  type Size,
  sequences,
  sizeOf,
  type Terminal,
} from '../parts/screen.ts'
import { type Line, lineWidth } from '../parts/spans.ts'
import { StandIns } from '../parts/stand-ins.ts'
import { Chat } from './effects.ts'
import { type Live, liveOf } from './live.ts'
import { panelScreen } from './panel-view.ts'
import { shownLines } from './shown.ts'
import { start } from './state.ts'
import type { Event, Printed } from './types.ts'
import { ChatView } from './view.tsx'

/** Between two frames of an answer that comes. What a person types is shown at once. */
const frameMs = 40
/** Ink draws what it has put off. */
const settleMs = 5

/** Speak with an agent until the person leaves. */
export async function chatInTerminal(options: FrontOptions): Promise<void> {
  const { stdin, stdout } = options.terminal
  await new ChatScreen({ stdin, stdout, write: options.write }, options).run()
}

/** What stays on the screen, and how it was last drawn. */
interface Shown {
  readonly key: number
  readonly printed: Printed
  /** Stands for the lines where Ink draws them. */
  readonly text: string
  lines: readonly Line[]
}

class ChatScreen {
  readonly #chat: Chat
  readonly #screen: InkScreen
  readonly #paint
  readonly #keys: KeyReader
  readonly #standIns = new StandIns()
  #ink: Instance | undefined
  #highlight: Highlight | undefined
  readonly #printed: Shown[] = []
  /** Of those, what Ink has been given. */
  #given: readonly Shown[] = []
  #live: Live = { lines: [], cursor: undefined }
  #isFrameDue = false
  #isPanelOpen = false
  /** The terminal has another size than what is drawn. */
  #isReflowing = false
  #drawnColumns: number
  #end = () => {}

  constructor(
    private readonly terminal: Terminal,
    private readonly options: FrontOptions,
  ) {
    const { port, desk, clock, about, colour } = options
    this.#screen = new InkScreen(terminal, this.#standIns)
    this.#paint = paintFor(colour)
    this.#keys = new KeyReader(clock, key => this.#chat.dispatch(key))
    const size = sizeOf(terminal)
    this.#drawnColumns = size.columns
    this.#chat = new Chat(start(about, size, clock.now()), {
      port,
      desk,
      clock,
      onPrint: printed => this.#print(printed),
      onChange: event => this.#changed(event),
      onRedraw: () => this.#resized(),
      onLeave: () => this.#end(),
    })
  }

  async run(): Promise<void> {
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
        undo: () => this.#undo(),
      },
      pasteMarks.on,
    )
    try {
      this.#ink = this.#mount()
      void this.#loadColours()
      const { conversation, question } = this.options
      if (conversation) await this.#chat.resume(conversation.name)
      if (question) this.#chat.dispatch({ type: 'submitted', text: question })
      await ended
    } finally {
      held.deafen()
      this.#keys.close()
      const closed = this.#chat.close()
      this.#closePanel()
      this.#live = { lines: [], cursor: undefined }
      this.#ink?.rerender(this.#view())
      await this.#settled()
      this.#ink?.unmount()
      this.#screen.flush()
      held.release()
      await closed
    }
  }

  #undo(): string {
    return pasteMarks.off + (this.#isPanelOpen ? sequences.main : '') + sequences.showCursor
  }

  #mount(): Instance {
    this.#compose()
    return render(this.#view(), inkOptions(this.#screen, this.terminal))
  }

  /** They are there before the first block of code is finished, and nothing waits for them. */
  async #loadColours(): Promise<void> {
    if (!this.options.colour) return
    const { highlight } = await import('../markdown/highlight.ts')
    this.#highlight = highlight
  }

  #write(text: string): void {
    this.#screen.flush()
    this.terminal.write(text)
  }

  #print(printed: Printed): void {
    const lines = this.#linesOf(printed)
    const text = this.#standIns.once(lines.map(this.#paint))
    this.#printed.push({ key: this.#printed.length, printed, lines, text })
  }

  #linesOf(printed: Printed): Line[] {
    const { columns } = sizeOf(this.terminal)
    return shownLines(printed, { columns, agent: this.options.about.agent, highlight: this.#highlight })
  }

  #changed(event: Event): void {
    if (event.type === 'turn' || event.type === 'tick') this.#drawSoon()
    else this.#draw()
  }

  #drawSoon(): void {
    if (this.#isFrameDue) return
    this.#isFrameDue = true
    this.options.clock.after(frameMs, () => {
      if (this.#isFrameDue) this.#draw()
    })
  }

  #draw(): void {
    this.#isFrameDue = false
    if (!this.#ink || this.#isReflowing) return
    const { panel, size } = this.#chat.state
    if (panel) {
      if (!this.#isPanelOpen) this.#write(sequences.alternate + sequences.hideCursor)
      this.#isPanelOpen = true
      this.#write(panelScreen(panel, size, this.#paint, this.#highlight))
      return
    }
    if (this.#isPanelOpen) {
      this.#closePanel()
      if (size.columns !== this.#drawnColumns) {
        this.#resized()
        return
      }
    }
    this.#compose()
    this.#ink.rerender(this.#view())
  }

  #closePanel(): void {
    if (this.#isPanelOpen) this.#write(sequences.main + sequences.showCursor)
    this.#isPanelOpen = false
  }

  #compose(): void {
    this.#live = liveOf(this.#chat.state, this.#highlight)
    this.#drawnColumns = this.#chat.state.size.columns
    if (this.#given.length !== this.#printed.length) this.#given = [...this.#printed]
  }

  #view() {
    const { lines, cursor } = this.#live
    const live = this.#standIns.frame(lines.map(this.#paint))
    return <ChatView printed={this.#given} live={live} cursor={cursor} />
  }

  /** Ink forgets what it drew; all that the screen shows is erased, and drawn anew as it fits now. */
  #resized(): void {
    if (this.#isPanelOpen || this.#isReflowing) {
      this.#chat.dispatch({ type: 'resized', size: sizeOf(this.terminal) })
      return
    }
    this.#isReflowing = true
    this.#screen.isHidden = true
    const drawn = this.#live
    this.#live = { lines: [], cursor: undefined }
    this.#ink?.rerender(this.#view())
    void this.#settled().then(() => {
      const size = sizeOf(this.terminal)
      this.#chat.dispatch({ type: 'resized', size })
      this.#screen.isHidden = false
      this.#isReflowing = false
      this.#write(sequences.hold + this.#redrawn(drawn, size))
      this.#draw()
      this.#write(sequences.release)
    })
  }

  /** What erases the screen, and draws the end of what stays; Ink takes it for the one line that it drew last. */
  #redrawn(drawn: Live, size: Size): string {
    const tail = this.#given.slice(this.#tailStart(size.rows))
    const old = [...tail.flatMap(({ lines }) => lines), ...drawn.lines]
    const above = old.length - drawn.lines.length
    const { x, y } = drawn.cursor ?? { x: 0, y: drawn.lines.length }
    for (const shown of tail) shown.lines = this.#linesOf(shown.printed)
    const lines = tail.flatMap(shown => shown.lines)
    const room = Math.max(0, size.rows - liveOf(this.#chat.state).lines.length - 1)
    const text = lines.slice(-room).map(line => `${this.#paint(line)}\r\n`)
    return `${eraseReflowed(old.map(lineWidth), { x, y: above + y }, size)}${room > 0 ? text.join('') : ''}\n`
  }

  /** The first of those at the end that fill a screen. */
  #tailStart(rows: number): number {
    let at = this.#given.length
    for (let lines = 0; at > 0 && lines < rows; at--) lines += this.#given[at - 1]!.lines.length
    return at
  }

  #settled(): Promise<void> {
    return new Promise(done => {
      this.options.clock.after(settleMs, done)
    })
  }
}
