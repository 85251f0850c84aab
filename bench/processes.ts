import { spawnSync } from 'node:child_process'
import { median } from './statistics.ts'

const runs = 15

/** Command line of a process. */
export interface Line {
  readonly command: string
  readonly args: readonly string[]
  readonly env?: NodeJS.ProcessEnv
}

/**
 * Runs a process, and returns its duration in milliseconds.
 *
 * @throws Error  its exit status is not 0
 */
export function time({ command, args, env = process.env }: Line): number {
  const started = performance.now()
  const { status, stderr } = spawnSync(command, args, { env, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${args.join(' ')}: ${stderr}`)
  return performance.now() - started
}

/**
 * Compares command lines with bare Node. Runs alternate, so that changes of the machine's speed affect both. Returns
 * rows with name, median in milliseconds, and ratio.
 */
export function compare(lines: Readonly<Record<string, Line>>): string[][] {
  const bare: number[] = []
  const times = new Map(Object.keys(lines).map(name => [name, [] as number[]]))
  for (const line of Object.values(lines)) time(line)
  for (let at = 0; at < runs; at++) {
    bare.push(time({ command: process.execPath, args: ['-e', '0'] }))
    for (const [name, line] of Object.entries(lines)) times.get(name)!.push(time(line))
  }
  const base = median(bare)
  const rows = [...times].map(([name, sample]) => [
    name,
    median(sample).toFixed(0),
    (median(sample) / base).toFixed(2),
  ])
  return [['node -e 0', base.toFixed(0), '1.00'], ...rows]
}
