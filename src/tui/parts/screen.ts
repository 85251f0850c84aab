import { EventEmitter } from 'node:events'
import type { RenderOptions } from 'ink'
import type { StandIns } from './stand-ins.ts'

/** A terminal that is written to and read from. */
export interface Terminal {
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WriteStream
  /** What goes to the terminal, in the signs that it takes. */
  write(text: string): void
}

/** Of a screen, in cells. */
export interface Size {
  readonly columns: number
  readonly rows: number
}

/** The usual size where a terminal does not tell its own. */
export function sizeOf({ stdout }: Terminal): Size {
  return { columns: stdout.columns || 80, rows: stdout.rows || 24 }
}

/** How Ink draws on a screen of ours: keys and the end are none of its business, and each change is a frame. */
export function inkOptions(screen: InkScreen, { stdin }: Terminal): RenderOptions {
  const stream = screen as unknown as NodeJS.WriteStream
  return { stdout: stream, stderr: stream, stdin, exitOnCtrlC: false, patchConsole: false, maxFps: 0 }
}

/** Further down than any screen reaches. */
const rowsEnough = 100_000

/**
 * What Ink takes for the terminal. It is told nothing of the height, as what it draws is kept smaller than the screen,
 * and nothing of a change of size, as it would erase what a terminal has broken into other lines since.
 */
export class InkScreen extends EventEmitter {
  readonly isTTY = true
  readonly rows = rowsEnough
  /** What is drawn meanwhile is nowhere to be seen. */
  isHidden = false
  #gathered = ''

  constructor(
    private readonly terminal: Terminal,
    private readonly standIns: StandIns,
  ) {
    super()
  }

  get columns(): number {
    return this.terminal.stdout.columns || 80
  }

  write(text: string, done?: () => void): boolean {
    const lines = this.standIns.resolve(text)
    if (!this.isHidden && lines !== '') this.#gather(changes(text) ? unbroken(lines) : lines)
    done?.()
    return true
  }

  /** Write what was gathered; due before anything else is written. */
  flush(): void {
    const gathered = this.#gathered
    this.#gathered = ''
    if (gathered !== '') this.terminal.write(gathered)
  }

  /** Ink writes a frame in pieces, and each would be a call to the system. */
  #gather(text: string): void {
    if (this.#gathered === '') queueMicrotask(() => this.flush())
    this.#gathered += text
  }
}

/** True of what Ink will erase again; what stays has neither of these. */
function changes(text: string): boolean {
  return text.includes(sequences.showCursor) || text.includes('\x1b[2K')
}

/**
 * Lines that the terminal does not break, whatever its width has become meanwhile: else there would be more of them than
 * are erased.
 */
function unbroken(text: string): string {
  return `\x1b[?7l${text}\x1b[?7h`
}

export const sequences = {
  alternate: '\x1b[?1049h',
  main: '\x1b[?1049l',
  hideCursor: '\x1b[?25l',
  showCursor: '\x1b[?25h',
  top: '\x1b[H',
  eraseLine: '\x1b[K',
  eraseBelow: '\x1b[J',
  /** What follows is shown at once, by terminals that know how. @see https://gist.github.com/christianparpart/d8a62cc1ab659194337d73e399004036 */
  hold: '\x1b[?2026h',
  release: '\x1b[?2026l',
}

/**
 * Erase lines that a terminal has broken anew since they were drawn, the last of them that the screen shows.
 *
 * @param widths  of the lines, in cells
 * @param cursor  where the cursor was among them
 */
export function eraseReflowed(
  widths: readonly number[],
  cursor: { readonly x: number; readonly y: number },
  { columns, rows }: Size,
): string {
  const height = (width: number) => Math.max(1, Math.ceil(width / columns))
  const above = widths.slice(0, cursor.y).reduce((sum, width) => sum + height(width), 0)
  const up = Math.min(rows, above + Math.floor(cursor.x / columns))
  // A terminal that is told to erase from its first cell on may keep all of it among what scrolled away.
  return `\r${up > 0 ? `\x1b[${up}A` : ''}\x1b[2K\n${sequences.eraseBelow}\x1b[A`
}
