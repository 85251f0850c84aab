import { spawnSync } from 'node:child_process'

/** Where nobody asks after orphans that have ended, they stay in the list of processes. */
export function isAlive(pid: number): boolean {
  const state = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).stdout.trim()
  return state !== '' && !state.startsWith('Z')
}
