import { resolve } from 'node:path'
import { spawn } from '@lydell/node-pty'
import { FakeIo } from '../harness/fake-io.ts'
import { runInProcess } from '../harness/in-process.ts'
import type { Place } from './wb.ts'

const bin = resolve('bin/run.js')

/** What a command wrote to a terminal, control sequences included. */
export interface Screen {
  status: number
  text: string
  /** It left the terminal as it was: what is typed is shown, and given to who reads at the end of a line. */
  isSane: boolean
}

export interface Typing {
  cols?: number
  /** True when left out. */
  colour?: boolean
  cwd?: string
  /** Called with everything that was written since the last answer; what it returns is typed. */
  answer?(text: string): string | undefined
}

/**
 * The shell tells the status and how the terminal was left, and stays, as a terminal that ends may take with it what was
 * not read yet. It catches Ctrl-C, so that only the command gets it.
 */
const script = `trap : INT; "$@"; status=$?
case " $(echo $(stty -a)) " in *' icanon '*' echo '*) left=sane;; *) left=raw;; esac
printf 'ended with %s, %s\\n' $status $left; read _`
const end = /ended with (\d+), (sane|raw)\r?\n$/

/** Run a command line in a terminal of its own, with colours. */
export function inTerminal(
  { env, home }: Place,
  args: string[],
  { cols = 80, colour = true, cwd = home, answer }: Typing = {},
): Promise<Screen> {
  const { NO_COLOR: _, ...colourful } = env
  const terminal = spawn('/bin/sh', ['-c', script, 'sh', process.execPath, bin, ...args], {
    cols,
    rows: 50,
    cwd,
    env: { ...(colour ? colourful : env), TERM: 'xterm-256color' },
  })
  let text = ''
  let answered = 0
  return new Promise(done =>
    terminal.onData(data => {
      text += data
      const ended = end.exec(text)
      if (ended) {
        terminal.kill()
        done({ status: Number(ended[1]), text: text.slice(0, ended.index), isSane: ended[2] === 'sane' })
        return
      }
      const typed = answer?.(text.slice(answered))
      if (typed === undefined) return
      answered = text.length
      terminal.write(typed)
    }),
  )
}

/**
 * Runs a command line in this process, with output to a terminal. Takes less time than {@link inTerminal}, but cannot
 * type or show how the command leaves the terminal.
 */
export async function inFakeTerminal(
  { env, home, keyCost }: Place,
  args: string[],
  { cols = 80, colour = true, cwd = home }: Omit<Typing, 'answer'> = {},
): Promise<Omit<Screen, 'isSane'>> {
  const { NO_COLOR: _, ...colourful } = env
  const io = new FakeIo({ env: { ...(colour ? colourful : env), TERM: 'xterm-256color' }, cwd, keyCost })
  let text = ''
  for (const stream of [io.stdin, io.stdout, io.stderr])
    Object.assign(stream, { isTTY: true, columns: cols, rows: 50 })
  for (const stream of [io.stdout, io.stderr])
    stream.on('data', part => {
      text += String(part).replaceAll('\n', '\r\n')
    })
  return { status: await runInProcess(args, io), text }
}

/** What remains when control sequences are taken out. */
export function withoutSequences(text: string): string {
  return text.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '').replaceAll('\r\n', '\n')
}
