import chalk from 'chalk'
import { type Instance, render } from 'ink'
import type { ReactNode } from 'react'
import type { Io } from '../../cli/io.ts'
import { bracketedPaste } from './keys.ts'

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
 * A terminal in raw mode that shows one Ink app at a time, for example first a chat and then a panel. Apps do not set
 * raw mode themselves, because the terminal would then echo keys that are typed between two apps.
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
    // This listener must run before Ink's, which would erase too few rows after the terminal has rewrapped them.
    stdout.on('resize', this.#onResize)
    this.#stopRestoring = signals.onExit(this.#restore)
    stdout.write(bracketedPaste.on)
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

  /** Switches to the alternate screen, which has no scrollback, or back to the main screen. */
  showAlternateScreen(isAlternate: boolean): void {
    if (isAlternate === this.#isAlternate) return
    this.#isAlternate = isAlternate
    this.terminal.stdout.write(isAlternate ? sequences.alternateOn : sequences.alternateOff)
  }

  /** Moves the cursor up by a number of rows, and erases the screen from there to its end. */
  eraseFrom(rowsAbove: number): void {
    const up = rowsAbove > 0 ? `\x1b[${rowsAbove}A` : ''
    // Erases the first row separately: some terminals copy the screen to the scrollback if one sequence erases it all.
    this.terminal.stdout.write(`\r${up}\x1b[2K\n\x1b[J\x1b[A`)
  }

  /** Stops listening for resizes, the end of input, and the signal. Apps still read keys. */
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
    stdout.write(
      bracketedPaste.off + (this.#isAlternate ? sequences.alternateOff : '') + sequences.showCursor,
    )
  }
}
