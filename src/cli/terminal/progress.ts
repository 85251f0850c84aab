import type { Clock } from '../../base/clock.ts'
import { formatCount, type Sink } from './output.ts'
import { plain, truncate } from './terminal-text.ts'

const showAfterMs = 150
const frameMs = 80
const barCells = 30
const spinner = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'
const eraseLine = '\r\x1b[2K'

/** A progress line in a terminal. It is removed when the work ends. */
export interface Progress {
  /** Shows a spinner, for work of unknown size. */
  spin(label: string): void
  /** Shows a progress bar. `unit` is used in the rate, such as "docs"; "bytes" are shown as megabytes. */
  step(step: { label: string; done: number; total: number; unit?: string }): void
  /** Writes permanent lines above the progress line. */
  above(write: () => void): void
  /** Removes the progress line. */
  end(): void
}

interface ProgressState {
  label: string
  done: number
  total: number
  unit: string
  /** Time at which this label was first shown. The rate is calculated from it. */
  sinceMs: number
  /** `done` at that time. */
  doneBefore: number
}

/** Progress that shows nothing, for pipes, CI and `--quiet`. */
export const silentProgress: Progress = { spin() {}, step() {}, above: write => write(), end() {} }

/**
 * Shows progress on a terminal. The line appears after 150 ms.
 *
 * @param stream  stderr, so that stdout contains only the result
 */
export function terminalProgress(stream: Sink, clock: Clock): Progress {
  let state: ProgressState | undefined
  let isDrawn = false
  let cancel: (() => void) | undefined
  let frame = 0
  /** Starts by label, because calls can alternate between several labels. */
  const startOfLabel = new Map<string, Pick<ProgressState, 'sinceMs' | 'doneBefore'>>()

  function draw(): void {
    if (!state) return
    stream.write(eraseLine + truncate(progressLine(state, clock.now(), frame++), (stream.columns ?? 80) - 1))
    isDrawn = true
    cancel = clock.after(frameMs, draw)
  }
  function update(label: string, done: number, total: number, unit: string): void {
    const start = startOfLabel.get(label) ?? { sinceMs: clock.now(), doneBefore: done }
    if (total > 0) startOfLabel.set(label, start)
    // Labels can contain untrusted names.
    state = { label: plain(label).replace(/\s/g, ' '), done, total, unit, ...start }
    cancel ??= clock.after(showAfterMs, draw)
  }
  function erase(): void {
    if (isDrawn) stream.write(eraseLine)
    isDrawn = false
  }
  return {
    spin: label => update(label, 0, 0, ''),
    step: ({ label, done, total, unit = '' }) => update(label, done, total, unit),
    above(write) {
      const wasDrawn = isDrawn
      erase()
      write()
      if (wasDrawn) {
        cancel?.()
        draw()
      }
    },
    end() {
      cancel?.()
      cancel = undefined
      state = undefined
      startOfLabel.clear()
      erase()
    },
  }
}

/** Formats a progress line: a spinner, or a bar with count, rate and time left. */
export function progressLine(
  { label, done, total, unit, sinceMs, doneBefore }: ProgressState,
  nowMs: number,
  frame: number,
): string {
  if (total === 0) return `  ${spinner[frame % spinner.length]} ${label}`
  const filled = Math.min(barCells, Math.floor((done / total) * barCells))
  const bar = '█'.repeat(filled) + '░'.repeat(barCells - filled)
  const [format, name] = unit === 'bytes' ? [formatMegabytes, ' MB'] : [formatInteger, unit && ` ${unit}`]
  const parts = [`  ${label}`, bar, `${format(done)}/${format(total)}${unit === 'bytes' ? name : ''}`]
  const seconds = (nowMs - sinceMs) / 1_000
  if (done > doneBefore && seconds > 0.5) {
    const rate = (done - doneBefore) / seconds
    parts.push(`${format(rate)}${name}/s`, `${formatTimeLeft((total - done) / rate)} left`)
  }
  return parts.join('  ')
}

function formatInteger(value: number): string {
  return formatCount(Math.round(value))
}

function formatMegabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(1)
}

/** Formats a duration as minutes and seconds, such as `04:05`. */
function formatTimeLeft(seconds: number): string {
  const roundedUp = Math.ceil(seconds)
  return `${String(Math.floor(roundedUp / 60)).padStart(2, '0')}:${String(roundedUp % 60).padStart(2, '0')}`
}
