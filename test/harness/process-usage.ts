import { readFileSync } from 'node:fs'

const ticksPerSecond = 100

/** Current and peak resident memory of a process in bytes. Linux only. */
export function memoryOf(pid: number): { now: number; peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1_024
  return { now: field('VmRSS'), peak: field('VmHWM') }
}

/** CPU time that all threads of a process have used, in seconds. Linux only. Another process has a resolution of 10 ms. */
export function cpuSecondsOf(pid: number): number {
  if (pid === process.pid) {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1_000_000
  }
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}
