import { spawnSync } from 'node:child_process'

/** Returns true if a process is running. Exited processes that no parent has waited for do not count. */
export function isAlive(pid: number): boolean {
  const state = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).stdout.trim()
  return state !== '' && !state.startsWith('Z')
}
