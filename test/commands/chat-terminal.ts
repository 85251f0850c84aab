import { spawn } from '@lydell/node-pty'
import { onTestFinished } from 'vitest'
import { Emulator } from '../harness/emulator.ts'
import { withoutSequences } from './terminal.ts'
import type { Place } from './wb.ts'

/** As long as words are waited for. */
const patienceMs = 20_000

/** A chat in a terminal. `shows` waits for words that come after those that were waited for before. */
export function chat(
  { env, home }: Place,
  args: string[] = [],
  { command = 'chat', cols = 80, rows = 24 } = {},
) {
  const child = spawn(process.execPath, [`${process.cwd()}/bin/run.js`, command, ...args], {
    cols,
    rows,
    cwd: home,
    env: { ...env, TERM: 'xterm-256color' },
  })
  const screen = new Emulator(cols, rows)
  let seen = ''
  /** The same without sequences, up to one that may not have come whole. */
  let words = ''
  let rest = ''
  let read = 0
  let wake = () => {}
  child.onData(text => {
    screen.write(text)
    seen += text
    rest += text
    const last = rest.lastIndexOf('\x1b')
    const end = last >= rest.length - 16 && last >= 0 ? last : rest.length
    words += withoutSequences(rest.slice(0, end))
    rest = rest.slice(end)
    wake()
  })
  const ended = new Promise<number>(done => child.onExit(({ exitCode }) => done(exitCode)))
  onTestFinished(() => child.kill())
  return {
    ended,
    type: (text: string) => child.write(text),
    kill: () => child.kill('SIGKILL'),
    resize: (columns: number, lines: number) => child.resize(columns, lines),
    raw: () => seen,
    /** What the terminal shows, and what scrolled away before; of one that has kept its size. */
    lines: () => screen.lines,
    async shows(wanted: string): Promise<void> {
      const lateAt = performance.now() + patienceMs
      for (;;) {
        const at = (words + withoutSequences(rest)).indexOf(wanted, read)
        if (at >= 0) {
          read = at + wanted.length
          return
        }
        const leftMs = lateAt - performance.now()
        if (leftMs <= 0) throw new Error(`no "${wanted}" in\n${screen.lines.slice(-rows).join('\n')}`)
        await new Promise<void>(done => {
          const late = setTimeout(done, leftMs)
          wake = () => {
            clearTimeout(late)
            done()
          }
        })
      }
    },
  }
}
