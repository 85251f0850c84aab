import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { systemClock } from '../../base/clock.ts'
import { surveyFolder } from '../local.ts'
import type { Profile } from '../settings/profile.ts'
import { createDecision, findDecision, storeDecision } from './decisions.ts'
import { findDataDirWithoutStore } from './folder-files.ts'

const dataDirFile = '.workbase/'

/**
 * Trusts a `.workbase/` that this process creates, and a store that it creates in a trusted one.
 *
 * @returns a function to call after the data directory was opened
 * @see docs/security.md#rule-6
 */
export function trustCreatedDataDir(profile: Pick<Profile, 'dataDir' | 'settingsDir'>): () => Promise<void> {
  const before = findDataDirWithoutStore(profile.dataDir)
  return async () => {
    if (!before) return
    try {
      await storeTrust(profile, before.isFolder)
    } catch {
      // Settings that cannot be written cost a question later.
    }
  }
}

async function storeTrust(
  { dataDir, settingsDir }: Pick<Profile, 'dataDir' | 'settingsDir'>,
  wasThere: boolean,
): Promise<void> {
  const folder = realpathSync(dirname(dataDir))
  const { files, fault } = await surveyFolder(folder)
  const created = files[dataDirFile]
  const decision = findDecision(settingsDir, folder)
  const known = decision?.trusted ? decision.files : {}
  if (!created || fault !== undefined || (wasThere && !(dataDirFile in known))) return
  await storeDecision(
    settingsDir,
    folder,
    createDecision(systemClock, true, { ...known, [dataDirFile]: created }),
  )
}
