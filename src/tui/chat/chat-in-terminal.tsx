import type { ChatOptions } from '../../cli/chat/chat-interfaces.ts'
import type { Highlight } from '../markdown/render.ts'
import { FrameLimiter } from '../parts/frame-limiter.ts'
import type { Key } from '../parts/keys.ts'
import { type Paint, paintFor } from '../parts/paint.ts'
import { lineWidth } from '../parts/spans.ts'
import { TerminalSession, terminalSize } from '../parts/terminal-session.ts'
import { ChatApp, PanelApp, type TranscriptItem } from './app.tsx'
import { Chat } from './chat.ts'
import { layoutLiveRegion } from './live-region.tsx'
import { startChat } from './state.ts'
import { transcriptLines } from './transcript.ts'
import type { ChatEvent, ChatState, TranscriptPart } from './types.ts'

/** Chats with an agent until the user leaves. */
export async function chatInTerminal(options: ChatOptions): Promise<void> {
  await new ChatScreen(options).run()
}

/** A chat in the scrollback of the terminal. Panels are shown on the alternate screen. */
class ChatScreen {
  readonly #chat: Chat
  readonly #session: TerminalSession
  readonly #frames: FrameLimiter
  readonly #paint: Paint
  #highlight: Highlight | undefined
  readonly #transcript: TranscriptItem[] = []
  /** Index of the first part that the current Ink app prints; earlier parts are already on the screen. */
  #firstPart = 0
  /** The last drawn frame of the main screen: its state, and the number of printed parts. */
  #lastFrame: { readonly state: ChatState; readonly count: number }
  #isPanelShown = false
  #isClosed = false
  #end = () => {}

  constructor(private readonly options: ChatOptions) {
    const { port, machine, clock, subject, hasColors, terminal, signal } = options
    const state = startChat(subject, terminalSize(terminal), clock.now())
    this.#lastFrame = { state, count: 0 }
    this.#paint = paintFor(hasColors)
    this.#frames = new FrameLimiter(clock, () => this.#draw())
    this.#chat = new Chat(state, {
      port,
      machine,
      clock,
      onPrint: part => this.#print(part),
      onChange: event => this.#onChange(event),
      onRedraw: () => this.#redraw(),
      onLeave: () => this.#end(),
    })
    this.#session = new TerminalSession(terminal, {
      hasColors,
      signal,
      onResize: () => this.#redraw(),
      onEnd: () => this.#end(),
    })
  }

  async run(): Promise<void> {
    const { conversation, question } = this.options
    const ended = new Promise<void>(done => {
      this.#end = done
    })
    this.#session.open()
    try {
      this.#draw()
      void this.#loadHighlight()
      if (conversation) await this.#chat.resume(conversation.name)
      else this.#chat.loadSuggestions()
      if (question) this.#chat.dispatch({ type: 'submitted', text: question })
      await ended
    } finally {
      this.#session.detach()
      const closed = this.#chat.close()
      this.#isClosed = true
      if (this.#isPanelShown) this.#switchTo('chat')
      this.#frames.drawNow()
      this.#session.close()
      await closed
    }
  }

  /** Loads the highlighter in the background, usually before the first code block is complete. */
  async #loadHighlight(): Promise<void> {
    if (!this.options.hasColors) return
    const { highlight } = await import('../markdown/highlight.ts')
    this.#highlight = highlight
  }

  #print(part: TranscriptPart): void {
    this.#transcript.push({ key: this.#transcript.length, part, options: this.#transcriptOptions() })
  }

  #transcriptOptions() {
    const { columns } = this.#chat.state.size
    return { columns, agent: this.options.subject.agent, highlight: this.#highlight }
  }

  #onChange({ type }: ChatEvent): void {
    const hasPanel = this.#chat.state.panel !== undefined
    if (hasPanel !== this.#isPanelShown) this.#switchTo(hasPanel ? 'panel' : 'chat')
    else if (type === 'turn' || type === 'tick') this.#frames.drawNextFrame()
    else this.#frames.drawNow()
  }

  readonly #onKey = (key: Key) => this.#chat.dispatch(key)

  #draw(): void {
    const { state } = this.#chat
    const app = {
      state,
      highlight: this.#highlight,
      paint: this.#paint,
      clock: this.options.clock,
      onKey: this.#onKey,
    }
    if (this.#isPanelShown) this.#session.draw(<PanelApp {...app} />)
    else {
      const transcript = this.#transcript.slice(this.#firstPart)
      this.#lastFrame = { state, count: this.#transcript.length }
      this.#session.draw(<ChatApp {...app} transcript={transcript} isClosed={this.#isClosed} />)
    }
  }

  #switchTo(app: 'chat' | 'panel'): void {
    this.#isPanelShown = app === 'panel'
    const { columns } = this.#chat.state.size
    const isWhole = columns !== this.#lastFrame.state.size.columns
    this.#session.writeTogether(() => {
      this.#session.hide()
      this.#session.showAlternateScreen(this.#isPanelShown)
      if (app === 'chat') this.#eraseLastFrame({ isWhole })
      this.#frames.drawNow()
    })
  }

  /**
   * Redraws the screen. Ink cannot update rows that a terminal has rewrapped to another width
   * (https://github.com/vadimdemedes/ink/issues/711).
   */
  #redraw(): void {
    const size = terminalSize(this.options.terminal)
    this.#chat.resize(size)
    this.#session.writeTogether(() => {
      this.#session.hide()
      if (this.#isPanelShown) this.#session.eraseFrom(size.rows)
      else this.#eraseLastFrame({ isWhole: true })
      this.#frames.drawNow()
    })
  }

  /**
   * Erases the live region. If `isWhole` is true, also erases the parts of the transcript that are on the screen, so
   * that they are printed again. Parts that have scrolled away do not change.
   */
  #eraseLastFrame({ isWhole }: { isWhole: boolean }): void {
    const { state, count } = this.#lastFrame
    const { columns, rows } = this.#chat.state.size
    const { cursor } = layoutLiveRegion(state, this.#highlight)
    this.#firstPart = count
    const heightOf = (width: number) => Math.max(1, Math.ceil(width / columns))
    let rowsAbove = cursor.y * heightOf(state.size.columns)
    while (isWhole && this.#firstPart > 0 && rowsAbove < rows) {
      const item = this.#transcript[--this.#firstPart]!
      for (const line of transcriptLines(item.part, item.options)) rowsAbove += heightOf(lineWidth(line))
      this.#transcript[this.#firstPart] = { ...item, options: this.#transcriptOptions() }
    }
    this.#session.eraseFrom(Math.min(rowsAbove, rows))
  }
}
