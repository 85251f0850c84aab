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
  /** The risky settings in the files at the time of the decision: those that could send data or run programs. */
  readonly files: FolderFiles
}

/** Trust decisions by the real path of the folder. */
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

/** Returns true if the risky settings have not changed since the decision. */
export function isUnchanged(before: FolderFiles, now: FolderFiles): boolean {
  return isDeepStrictEqual(before, now)
}
