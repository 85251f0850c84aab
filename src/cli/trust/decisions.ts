import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../base/clock.ts'
import { timestamp } from '../../base/clock.ts'
import type { FolderFiles } from '../local.ts'
import { changeSettings } from '../settings/change-settings.ts'
import { readSettings, withoutPrototype, writeSettings } from '../settings/settings-file.ts'

/** The user's decision about the files of a folder. */
export interface TrustDecision {
  readonly trusted: boolean
  /** Time in ISO 8601. */
  readonly decidedAt: string
  /** The settings that could send data or run programs, with their values at the time of the decision. */
  readonly files: FolderFiles
}

/** Trust decisions by the path of the folder, without symbolic links. */
export type Decisions = Readonly<Record<string, TrustDecision>>

function decisionsPath(settingsDir: string): string {
  return join(settingsDir, 'trusted.json')
}

/**
 * Reads the stored decisions. A corrupt file counts as empty, so nothing is trusted.
 *
 * @throws UsageError  other users can write to the file
 */
export function readDecisions(settingsDir: string): Decisions {
  const content = readSettings(decisionsPath(settingsDir))
  return typeof content === 'string' ? withoutPrototype({}) : (content as Decisions)
}

export function findDecision(settingsDir: string, folder: string): TrustDecision | undefined {
  return readDecisions(settingsDir)[folder]
}

/** Stores the decision about a folder; `undefined` removes it. */
export function storeDecision(
  settingsDir: string,
  folder: string,
  decision: TrustDecision | undefined,
): Promise<void> {
  return changeSettings(settingsDir, () => {
    const { [folder]: _before, ...others } = readDecisions(settingsDir)
    const decisions = decision ? { ...others, [folder]: decision } : others
    writeSettings(decisionsPath(settingsDir), decisions)
  })
}

export function createDecision(clock: Clock, trusted: boolean, files: FolderFiles): TrustDecision {
  return { trusted, decidedAt: timestamp(clock), files }
}

/** Returns true if the settings that could send data or run programs have not changed since the decision. */
export function isUnchanged(previous: FolderFiles, current: FolderFiles): boolean {
  return isDeepStrictEqual(previous, current)
}
