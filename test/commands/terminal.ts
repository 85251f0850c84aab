import { resolve } from 'node:path'
import { spawn } from '@lydell/node-pty'
import type { Place } from './wb.ts'

const bin = resolve('bin/run.js')

/** What a command wrote to a terminal, control sequences included. */
export interface Screen {
  status: number
  text: string
}

export interface Typing {
  cols?: number
  cwd?: string
  /** Called with everything that was written so far; what it returns is typed. */
  answer?(text: string): string | undefined
}

/** Run a command line in a terminal of its own, with colours. */
export function inTerminal(
  { env, home }: Place,
  args: string[],
  { cols = 80, cwd = home, answer }: Typing = {},
) {
  const { NO_COLOR: _, ...colourful } = env
  const terminal = spawn(process.execPath, [bin, ...args], {
    cols,
    rows: 50,
    cwd,
    env: { ...colourful, TERM: 'xterm-256color' },
  })
  let text = ''
  let answered = 0
  terminal.onData(data => {
    text += data
    const typed = answer?.(text.slice(answered))
    if (typed === undefined) return
    answered = text.length
    terminal.write(typed)
  })
  return new Promise<Screen>(done => terminal.onExit(({ exitCode }) => done({ status: exitCode, text })))
}

/** What remains on a line when control sequences have done their work. */
export function withoutSequences(text: string): string {
  return text.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '').replaceAll('\r\n', '\n')
}
