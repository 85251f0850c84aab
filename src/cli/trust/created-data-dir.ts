import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { systemClock } from '../../base/clock.ts'
import { surveyFolder } from '../local.ts'
import type { Profile } from '../settings/profile.ts'
import { createDecision, findDecision, storeDecision } from './decisions.ts'
import { findDataDirWithoutStore } from './folder-files.ts'

const dataDirFile = '.workbase/'

/**
 * Stores a trust decision for a `.workbase/` that this process is about to create, or for a store that it is about to
 * create in a trusted `.workbase/`.
 *
 * @returns a function to call after the data directory was opened, which stores the decision
 * @see docs/security.md#rule-6
 */
export function trustCreatedDataDir(profile: Pick<Profile, 'dataDir' | 'settingsDir'>): () => Promise<void> {
  const before = findDataDirWithoutStore(profile.dataDir)
  return async () => {
    if (!before) return
    try {
      await storeTrust(profile, before.isFolder)
    } catch {
      // If the decision cannot be stored, a later command asks the user.
    }
  }
}

async function storeTrust(
  { dataDir, settingsDir }: Pick<Profile, 'dataDir' | 'settingsDir'>,
  existedBefore: boolean,
): Promise<void> {
  const folder = realpathSync(dirname(dataDir))
  const { files, fault } = await surveyFolder(folder)
  const created = files[dataDirFile]
  const decision = findDecision(settingsDir, folder)
  const trustedFiles = decision?.trusted ? decision.files : {}
  if (!created || fault !== undefined || (existedBefore && !(dataDirFile in trustedFiles))) return
  await storeDecision(
    settingsDir,
    folder,
    createDecision(systemClock, true, { ...trustedFiles, [dataDirFile]: created }),
  )
}
