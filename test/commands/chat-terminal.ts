import { spawn } from '@lydell/node-pty'
import { onTestFinished } from 'vitest'
import { TerminalEmulator } from '../harness/terminal-emulator.ts'
import type { Sandbox } from './sandbox.ts'
import { stripSequences } from './terminal.ts'

/** Maximum time to wait for text on the screen. */
const waitMaxMs = 20_000

/** Starts a chat in a terminal. `shows` waits for text after the text that earlier calls matched. */
export function startChat(
  { env, home }: Sandbox,
  args: string[] = [],
  { command = 'chat', cols = 80, rows = 24 } = {},
) {
  const child = spawn(process.execPath, [`${process.cwd()}/bin/run.js`, command, ...args], {
    cols,
    rows,
    cwd: home,
    env: { ...env, TERM: 'xterm-256color' },
  })
  const screen = new TerminalEmulator(cols, rows)
  let seen = ''
  /** Output without control sequences, up to a sequence that may be incomplete. */
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
    words += stripSequences(rest.slice(0, end))
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
    /** Returns the lines on the screen and in the scrollback. Valid only if the terminal was not resized. */
    lines: () => screen.lines,
    async shows(wanted: string): Promise<void> {
      const lateAt = performance.now() + waitMaxMs
      for (;;) {
        const at = (words + stripSequences(rest)).indexOf(wanted, read)
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
