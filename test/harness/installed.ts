import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'

/** Tells whether a program of the system is on the path. Tests that need another one are skipped. */
export function hasProgram(name: string): boolean {
  return spawnSync(name, ['--version'], { stdio: 'ignore' }).error === undefined
}

/** Tells whether an optional package is installed. */
export function hasPackage(name: string): boolean {
  try {
    createRequire(import.meta.url).resolve(name)
    return true
  } catch {
    return false
  }
}
