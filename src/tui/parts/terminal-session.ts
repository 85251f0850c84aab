import chalk from 'chalk'
import { type Instance, render } from 'ink'
import type { ReactNode } from 'react'
import type { Io } from '../../cli/io.ts'
import { pasteMarks } from './keys.ts'

/** The streams of a terminal, and the end of the process that uses it. */
export type Terminal = Pick<Io, 'stdin' | 'stdout' | 'signals'>

/** Size of a terminal, in cells. */
export interface Size {
  readonly columns: number
  readonly rows: number
}

/** Returns the size of a terminal; the usual one if it does not report any. */
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
  /** Ends the session from outside. */
  readonly signal: AbortSignal
  onResize(): void
  /** Called when the input ends, or the signal fires. */
  onEnd(): void
}

/**
 * A terminal in raw mode, in which Ink apps follow each other: one for the chat, another one for a panel above it. Apps
 * do not set raw mode themselves, because the terminal would echo what is typed between two of them.
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
    // Runs before the listener of an app, which would erase too few of the rows that the terminal has wrapped again.
    stdout.on('resize', this.#onResize)
    this.#stopRestoring = signals.onExit(this.#restore)
    stdout.write(pasteMarks.on)
    // Ink has no option for colors.
    chalk.level = hasColors ? 1 : 0
  }

  /** Shows an app below what is on the screen, or draws a change of it, at once. Does nothing after {@link close}. */
  draw(node: ReactNode): void {
    if (this.#isClosed) return
    this.writeTogether(() => {
      const { stdin, stdout } = this.terminal
      const options = { exitOnCtrlC: false, patchConsole: false, maxFps: 0 }
      if (this.#app) this.#app.rerender(node)
      else this.#app = render(node, { stdin, stdout, stderr: stdout, ...options })
    })
  }

  /** Runs work whose output the terminal gets in one piece, so it never shows a part of a frame. */
  writeTogether(work: () => void): void {
    const { stdout } = this.terminal
    stdout.cork()
    try {
      work()
    } finally {
      stdout.uncork()
    }
  }

  /** Ends the app. Its last frame stays on the screen, and the cursor stays where it is. */
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

  /** Erases the screen from some rows above the cursor on, and moves the cursor there. */
  eraseFrom(rowsAbove: number): void {
    const up = rowsAbove > 0 ? `\x1b[${rowsAbove}A` : ''
    // A terminal that erases from its first cell on may copy the whole screen into its scrollback.
    this.terminal.stdout.write(`\r${up}\x1b[2K\n\x1b[J\x1b[A`)
  }

  /** Stops listening to the terminal and to the signal; keys are read by the apps. */
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
