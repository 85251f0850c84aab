import { resolve } from 'node:path'
import { spawn } from '@lydell/node-pty'
import { FakeIo } from '../harness/fake-io.ts'
import { runInProcess } from '../harness/in-process.ts'
import type { Sandbox } from './sandbox.ts'

const bin = resolve('bin/run.js')

/** Terminal output of a command, including control sequences. */
export interface TerminalResult {
  status: number
  text: string
  /** True if the terminal is in canonical mode with echo again. */
  isSane: boolean
}

export interface TerminalOptions {
  cols?: number
  /** Defaults to true. */
  colour?: boolean
  cwd?: string
  /** Called with the output since the last answer. The return value is typed. */
  answer?(text: string): string | undefined
}

/**
 * Prints the exit status and the terminal mode, and waits, because output could be lost when a terminal closes. The
 * shell ignores Ctrl-C, so only the command receives it.
 */
const script = `trap : INT; "$@"; status=$?
case " $(echo $(stty -a)) " in *' icanon '*' echo '*) left=sane;; *) left=raw;; esac
printf 'ended with %s, %s\\n' $status $left; read _`
const end = /ended with (\d+), (sane|raw)\r?\n$/

/** Runs a command line in a new terminal, with colors. */
export function runInTerminal(
  { env, home }: Sandbox,
  args: string[],
  { cols = 80, colour = true, cwd = home, answer }: TerminalOptions = {},
): Promise<TerminalResult> {
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
 * Runs a command line in this process, with output to a terminal. Takes less time than {@link runInTerminal}, but cannot
 * type or show how the command leaves the terminal.
 */
export async function runInFakeTerminal(
  { env, home, keyCost }: Sandbox,
  args: string[],
  { cols = 80, colour = true, cwd = home }: Omit<TerminalOptions, 'answer'> = {},
): Promise<Omit<TerminalResult, 'isSane'>> {
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

/** Removes control sequences. */
export function stripSequences(text: string): string {
  return text.replace(/\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;;[^\x1b]*\x1b\\/g, '').replaceAll('\r\n', '\n')
}
