import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { programPath } from '../harness/program.ts'

/** A process that writes to a store. */
export interface Writer {
  readonly child: ChildProcess
  /** Lines that the process has printed: the documents or generations that it has acknowledged. */
  readonly acknowledged: string[]
  /** Resolves with the exit status or the signal. */
  readonly ended: Promise<number | string>
  readonly errors: () => string
}

/** Starts a process that writes `count` documents. */
export function startWriter(path: string, name: string, count: number, mode = ''): Writer {
  return startProgram('store/writer', path, name, String(count), mode)
}

/** Starts a test program that writes to a store. */
export function startProgram(program: string, ...args: string[]): Writer {
  const child = spawn(process.execPath, [programPath(program), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const acknowledged: string[] = []
  let rest = ''
  child.stdout.on('data', (bytes: Buffer) => {
    const lines = (rest + bytes.toString()).split('\n')
    rest = lines.pop()!
    acknowledged.push(...lines)
  })
  let errors = ''
  child.stderr.on('data', (bytes: Buffer) => {
    errors += bytes.toString()
  })
  const ended = once(child, 'close').then(([status, signal]) => (status ?? signal) as number | string)
  return { child, acknowledged, ended, errors: () => errors }
}
