import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { systemClock } from '../../base/clock.ts'
import { surveyFolder } from '../local.ts'
import type { Profile } from '../settings/profile.ts'
import { createDecision, findDecision, storeDecision } from './decisions.ts'
import { findDataDirWithoutStore } from './folder-files.ts'

const dataDirFile = '.workbase/'

/**
 * Prepares to trust a `.workbase/` that this process is about to create, or a new store in a trusted `.workbase/`.
 *
 * @returns a function that stores the trust decision; call it after opening the data directory
 * @see docs/security.md#rule-6
 */
export function trustCreatedDataDir(profile: Pick<Profile, 'dataDir' | 'settingsDir'>): () => Promise<void> {
  const dataDirWithoutStore = findDataDirWithoutStore(profile.dataDir)
  return async () => {
    if (!dataDirWithoutStore) return
    try {
      await storeTrust(profile, dataDirWithoutStore.exists)
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
  const createdDataDir = files[dataDirFile]
  const decision = findDecision(settingsDir, folder)
  const trustedFiles = decision?.trusted ? decision.files : {}
  if (!createdDataDir || fault !== undefined || (existedBefore && !(dataDirFile in trustedFiles))) return
  await storeDecision(
    settingsDir,
    folder,
    createDecision(systemClock, true, { ...trustedFiles, [dataDirFile]: createdDataDir }),
  )
}
