import type { Clock } from '../../base/clock.ts'
import { folderSays } from '../folder/decide.ts'
import { filesHere } from '../folder/here.ts'
import type { Profile } from '../settings/profile.ts'
import { readProfiles, requireProfile } from '../settings/profiles.ts'
import { type Finding, faultFound, ok, warning } from './check.ts'

/**
 * Checks for files in the working directory that are ignored because they are not trusted.
 *
 * @throws UsageError  when `.wb.yaml` names a profile that does not exist
 */
export async function folderFound(profile: Profile, clock: Clock): Promise<Finding> {
  const files = filesHere(profile.cwd)
  if (!files) return ok('no files in the working directory need trust')
  if (profile.nameFrom === '.wb.yaml') requireProfile(readProfiles(profile.settingsDir), profile.name)
  const unheard = { note() {}, warn() {}, agree: undefined }
  const { aside, refusal } = await folderSays(files, { profile, clock, isCi: false, ...unheard })
  if (refusal) return faultFound(refusal.error)
  if (aside.length > 0) return warning(`${aside.join(', ')}: not trusted, so not used`, 'wb trust')
  return ok(`no files in ${files.folder} need trust`)
}
