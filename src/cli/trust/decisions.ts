import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../base/clock.ts'
import { timestamp } from '../../base/clock.ts'
import type { FolderFiles } from '../local.ts'
import { changeSettings } from '../settings/change-settings.ts'
import { readSettings, withoutPrototype, writeSettings } from '../settings/settings-file.ts'

/** What a person said of the files of a folder. */
export interface TrustDecision {
  readonly trusted: boolean
  /** ISO-8601. */
  readonly decidedAt: string
  /** What they said then that could send or run something. */
  readonly files: FolderFiles
}

/** By folder: absolute, without symbolic links. */
export type Decisions = Readonly<Record<string, TrustDecision>>

function decisionsPath(settingsDir: string): string {
  return join(settingsDir, 'trusted.json')
}

/** A file that is broken means that nothing is trusted. @throws UsageError  others can write it */
export function readDecisions(settingsDir: string): Decisions {
  const content = readSettings(decisionsPath(settingsDir))
  return typeof content === 'string' ? withoutPrototype({}) : (content as Decisions)
}

export function findDecision(settingsDir: string, folder: string): TrustDecision | undefined {
  return readDecisions(settingsDir)[folder]
}

/** Keep what was said of a folder; `undefined` forgets it. */
export function storeDecision(
  settingsDir: string,
  folder: string,
  decision: TrustDecision | undefined,
): Promise<void> {
  return changeSettings(settingsDir, () => {
    const { [folder]: _before, ...others } = readDecisions(settingsDir)
    const kept = decision ? { ...others, [folder]: decision } : others
    writeSettings(decisionsPath(settingsDir), kept)
  })
}

export function createDecision(clock: Clock, trusted: boolean, files: FolderFiles): TrustDecision {
  return { trusted, decidedAt: timestamp(clock), files }
}

/** Whether files say what they said when they were decided on. */
export function isUnchanged(before: FolderFiles, now: FolderFiles): boolean {
  return isDeepStrictEqual(before, now)
}
