import chalk from 'chalk'
import { type Instance, render } from 'ink'
import type { ReactNode } from 'react'
import type { Io } from '../../cli/io.ts'
import { pasteMarks } from './keys.ts'

/** The streams of a terminal, and the signals of the process. */
export type Terminal = Pick<Io, 'stdin' | 'stdout' | 'signals'>

/** Size of a terminal, in cells. */
export interface Size {
  readonly columns: number
  readonly rows: number
}

/** Returns the size of a terminal, or 80 x 24 if it does not report one. */
export function terminalSize({ stdout }: Pick<Terminal, 'stdout'>): Size {
  return { columns: stdout.columns || 80, rows: stdout.rows || 24 }
}

const sequences = {
  alternateOn: '\x1b[?1049h\x1b[H',
  alternateOff: '\x1b[?1049l',
  showCursor: '\x1b[?25h',
}

export interface SessionOptions {
  readonly hasColors: boolean
  /** Ends the session when it fires. */
  readonly signal: AbortSignal
  onResize(): void
  /** Called when the input ends, or the signal fires. */
  onEnd(): void
}

/**
 * A terminal in raw mode that shows one Ink app after another, for example one for a chat and one for its panels.
 * Apps do not set raw mode themselves, because the terminal would echo keys that are typed between two apps.
 */
export class TerminalSession {
  #app: Instance | undefined
  #isAlternate = false
  #isClosed = false
  #stopRestoring = () => {}

  constructor(
    private readonly terminal: Terminal,
    private readonly options: SessionOptions,
  ) {}

  open(): void {
    const { stdin, stdout, signals } = this.terminal
    const { onEnd, signal, hasColors } = this.options
    stdin.setEncoding('utf8')
    stdin.setRawMode(true)
    stdin.on('end', onEnd)
    signal.addEventListener('abort', onEnd)
    // Must run before the listener of an app, which would erase too few rows after the terminal has rewrapped them.
    stdout.on('resize', this.#onResize)
    this.#stopRestoring = signals.onExit(this.#restore)
    stdout.write(pasteMarks.on)
    // Ink has no option for colors.
    chalk.level = hasColors ? 1 : 0
  }

  /** Draws an app below the current output, or updates it. Does nothing after {@link close}. */
  draw(node: ReactNode): void {
    if (this.#isClosed) return
    this.writeTogether(() => {
      const { stdin, stdout } = this.terminal
      const options = { exitOnCtrlC: false, patchConsole: false, maxFps: 0 }
      if (this.#app) this.#app.rerender(node)
      else this.#app = render(node, { stdin, stdout, stderr: stdout, ...options })
    })
  }

  /** Runs a function and sends its output to the terminal in one piece, so that no partial frame is visible. */
  writeTogether(draw: () => void): void {
    const { stdout } = this.terminal
    stdout.cork()
    try {
      draw()
    } finally {
      stdout.uncork()
    }
  }

  /** Ends the app. Its last frame and the cursor stay in place. */
  hide(): void {
    this.#app?.unmount()
    this.#app = undefined
  }

  /** Switches to the alternate screen, which has no scrollback, or back. */
  showAlternateScreen(isAlternate: boolean): void {
    if (isAlternate === this.#isAlternate) return
    this.#isAlternate = isAlternate
    this.terminal.stdout.write(isAlternate ? sequences.alternateOn : sequences.alternateOff)
  }

  /** Erases the screen from the given number of rows above the cursor, and moves the cursor there. */
  eraseFrom(rowsAbove: number): void {
    const up = rowsAbove > 0 ? `\x1b[${rowsAbove}A` : ''
    // Does not erase from the first cell in one sequence: some terminals would copy the screen to their scrollback.
    this.terminal.stdout.write(`\r${up}\x1b[2K\n\x1b[J\x1b[A`)
  }

  /** Stops listening to the terminal and the signal. Apps still read keys. */
  detach(): void {
    const { onEnd, signal } = this.options
    const { stdin, stdout } = this.terminal
    stdout.off('resize', this.#onResize)
    stdin.off('end', onEnd)
    signal.removeEventListener('abort', onEnd)
  }

  /** Restores the terminal. */
  close(): void {
    const { stdin } = this.terminal
    this.hide()
    this.#isClosed = true
    this.detach()
    this.#stopRestoring()
    this.#restore()
    stdin.setRawMode(false)
    stdin.pause()
  }

  readonly #onResize = () => this.options.onResize()

  readonly #restore = () => {
    const { stdout } = this.terminal
    stdout.write(pasteMarks.off + (this.#isAlternate ? sequences.alternateOff : '') + sequences.showCursor)
  }
}
