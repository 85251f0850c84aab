import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setPriority } from 'node:os'
import { join } from 'node:path'

export interface BenchProgramOptions {
  /** Scheduling priority of the process, from -20 (highest) to 19. The default is that of this process. */
  readonly niceness?: number
}

/** A program of this folder that runs in a separate process. */
export interface BenchProgram<Result> {
  readonly result: Promise<Result>
  /** Ends the standard input of the process. */
  stop(): void
}

/**
 * Runs a program of this folder in a separate process, so that its load does not delay this one. The program
 * accepts JSON as its only argument, and prints JSON.
 */
export function runBenchProgram<Result>(
  name: string,
  argument: object,
  options: BenchProgramOptions = {},
): BenchProgram<Result> {
  const file = join(import.meta.dirname, name)
  const child = spawn(process.execPath, ['--import', 'tsx', file, JSON.stringify(argument)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  if (options.niceness !== undefined) setPriority(child.pid!, options.niceness)
  const read = async () => {
    let text = ''
    child.stdout.setEncoding('utf8').on('data', part => {
      text += part
    })
    const [status] = (await once(child, 'close')) as [number]
    if (status !== 0) throw new Error(`${name} ended with ${status}`)
    return JSON.parse(text) as Result
  }
  return { result: read(), stop: () => void child.stdin.end() }
}
