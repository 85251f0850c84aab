import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'

/** Returns true if a program is in PATH; tests that need it are skipped otherwise. */
export function hasProgram(name: string): boolean {
  return spawnSync(name, ['--version'], { stdio: 'ignore' }).error === undefined
}

/** Returns true if an optional package is installed. */
export function hasPackage(name: string): boolean {
  try {
    createRequire(import.meta.url).resolve(name)
    return true
  } catch {
    return false
  }
}
