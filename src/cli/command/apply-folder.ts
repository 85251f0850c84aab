import { isCi } from '../environment.ts'
import type { Io } from '../io.ts'
import { type Profile, type ProfileFlags, readProfile } from '../settings/profile.ts'
import type { Output } from '../terminal/output.ts'
import { findFolderFiles } from '../trust/folder-files.ts'
import type { TrustRefusal } from '../trust/folder-settings.ts'
import type { Prompts } from './prompts.ts'

interface FolderContext {
  readonly io: Io
  readonly output: Output
  readonly prompts: Prompts
  /** True to ask about untrusted files, and to print notes about them. */
  readonly usesFolderFiles: boolean
}

/** A profile combined with the trusted settings of the working directory. */
export interface FolderProfile {
  readonly profile: Profile
  /** Error for requests that depend on untrusted settings. */
  readonly refusal: TrustRefusal | undefined
}

/**
 * Applies the configuration files of the working directory to a profile. Warns if `.wb.yaml` selects the profile.
 *
 * @param flags  flags with which the profile was read
 */
export async function applyFolder(
  profile: Profile,
  flags: ProfileFlags & { mayBeNew?: boolean },
  { io, output, prompts, usesFolderFiles }: FolderContext,
): Promise<FolderProfile> {
  const files = findFolderFiles(io.cwd)
  if (!files) return { profile, refusal: undefined }
  const { resolveFolderSettings } = await import('../trust/folder-settings.ts')
  const { settings, refusal } = await resolveFolderSettings(files, {
    profile,
    clock: io.clock,
    isCi: isCi(io.env),
    note: line => {
      if (usesFolderFiles) output.note(line)
    },
    warn: line => output.warn(line),
    confirm: usesFolderFiles && prompts.canAsk ? question => prompts.askYesNo(question, false) : undefined,
  })
  // Commands that ignore these files, such as `wb profiles add`, must not fail because a profile does not exist yet.
  const mayBeNew = flags.mayBeNew || !usesFolderFiles
  const resolved = readProfile({ ...flags, mayBeNew }, io, settings)
  if (resolved.nameSource === '.wb.yaml' && usesFolderFiles)
    output.warn(`  using profile ${resolved.name}, selected by .wb.yaml`)
  return { profile: resolved, refusal }
}
