import { join } from 'node:path'
import { type Profile, runtimeKey } from './profile.ts'
import { profilesPath, readProfiles, type StoredProfiles } from './profiles.ts'
import { writeSettings } from './settings-file.ts'
import { withLock } from './with-lock.ts'

/**
 * Change a file of the settings from what it is now: no other command changes it between the reading and the writing.
 *
 * The lock is one of its own, as that of the logins is held while a runtime is asked, and what is asked may write here.
 * It is held for so little that no Ctrl-C ends the wait: what is half kept would be worse.
 *
 * @param change  reads the file, and writes it
 * @throws UsageError, Unreachable  see `aloneWith`
 */
export function changeSettings(settingsDir: string, change: () => void): Promise<void> {
  const lock = { path: join(settingsDir, 'settings.lock'), what: 'the settings' }
  return withLock(lock, new AbortController().signal, async () => change())
}

/** Change what is stored of profiles, in one step that no other command comes between. */
export function changeProfiles(settingsDir: string, change: (stored: StoredProfiles) => void): Promise<void> {
  return changeSettings(settingsDir, () => {
    const stored = readProfiles(settingsDir)
    change(stored)
    writeSettings(profilesPath(settingsDir), stored)
  })
}

/** Remember a workspace for the runtime of this profile; `undefined` forgets it. */
export function setDefaultWorkspace(profile: Profile, workspaceId: string | undefined): Promise<void> {
  return changeProfiles(profile.settingsDir, ({ profiles }) => {
    const stored = profiles[profile.name] ?? { workspaces: {} }
    profiles[profile.name] = stored
    if (workspaceId === undefined) delete stored.workspaces[runtimeKey(profile)]
    else stored.workspaces[runtimeKey(profile)] = workspaceId
  })
}
