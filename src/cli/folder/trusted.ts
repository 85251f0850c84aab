import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../base/clock.ts'
import { timestamp } from '../../base/clock.ts'
import { writePrivately } from '../../base/private-file.ts'
import type { FolderFiles } from '../local.ts'

/** What a person said of the files of a folder. */
export interface Decision {
  readonly trusted: boolean
  /** ISO-8601. */
  readonly decidedAt: string
  /** What they said then that could send or run something. */
  readonly files: FolderFiles
}

/** By folder: absolute, without symbolic links. */
export type Decisions = Readonly<Record<string, Decision>>

function decisionsPath(settingsDir: string): string {
  return join(settingsDir, 'trusted.json')
}

/** A file that cannot be read means that nothing is trusted. */
export function readDecisions(settingsDir: string): Decisions {
  try {
    const content: unknown = JSON.parse(readFileSync(decisionsPath(settingsDir), 'utf8'))
    return typeof content === 'object' && content !== null ? (content as Decisions) : {}
  } catch {
    return {}
  }
}

export function decisionOn(settingsDir: string, folder: string): Decision | undefined {
  const all = readDecisions(settingsDir)
  return Object.hasOwn(all, folder) ? all[folder] : undefined
}

/** Keep what was said of a folder; `undefined` forgets it. */
export function decide(settingsDir: string, folder: string, decision: Decision | undefined): void {
  const { [folder]: _before, ...others } = readDecisions(settingsDir)
  const kept = decision ? { ...others, [folder]: decision } : others
  writePrivately(decisionsPath(settingsDir), `${JSON.stringify(kept, null, 2)}\n`)
}

export function decisionNow(clock: Clock, trusted: boolean, files: FolderFiles): Decision {
  return { trusted, decidedAt: timestamp(clock), files }
}

/** Whether files say what they said when they were decided on. */
export function isUnchanged(before: FolderFiles, now: FolderFiles): boolean {
  return isDeepStrictEqual(before, now)
}
