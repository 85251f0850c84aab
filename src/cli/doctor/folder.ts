import type { Clock } from '../../base/clock.ts'
import type { Profile } from '../settings/profile.ts'
import { readProfiles, requireProfile } from '../settings/profiles.ts'
import { findFolderFiles } from '../trust/folder-files.ts'
import { resolveFolderSettings } from '../trust/folder-settings.ts'
import { type Finding, findingFromError, ok, warning } from './check.ts'

/**
 * Reports files in the working directory that are ignored because they are not trusted.
 *
 * @throws UsageError  `.wb.yaml` selects a profile that does not exist
 */
export async function checkFolderTrust(profile: Profile, clock: Clock): Promise<Finding> {
  const files = findFolderFiles(profile.cwd)
  if (!files) return ok('no files in the working directory need trust')
  if (profile.nameSource === '.wb.yaml') requireProfile(readProfiles(profile.settingsDir), profile.name)
  const silent = { note() {}, warn() {}, confirm: undefined }
  const { ignored, refusal } = await resolveFolderSettings(files, { profile, clock, isCi: false, ...silent })
  if (refusal) return findingFromError(refusal.error)
  if (ignored.length > 0) return warning(`${ignored.join(', ')}: not trusted, so not used`, 'wb trust')
  return ok(`no files in ${files.folder} need trust`)
}
