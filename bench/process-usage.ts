import { readFileSync } from 'node:fs'

/** Returns the resident set of a process in MB, or NaN if it is not known. Linux only. */
export function residentMegabytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_000
}

/**
 * Returns the CPU time of all threads of a process in milliseconds. For another process, the resolution is 10 ms, and
 * the operating system must be Linux.
 */
export function cpuMilliseconds(pid: number): number {
  if (pid === process.pid) {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1_000
  }
  // The name of the program, in parentheses, can contain spaces. User and system time are the 14th and 15th field.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return 10 * (Number(fields[11]) + Number(fields[12]))
}
