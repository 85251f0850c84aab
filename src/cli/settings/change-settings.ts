import { join } from 'node:path'
import { type Profile, runtimeKey } from './profile.ts'
import { profilesPath, readProfiles, type StoredProfiles } from './profiles.ts'
import { writeSettings } from './settings-file.ts'
import { withLock } from './with-lock.ts'

/**
 * Changes a settings file while it holds the settings lock, which prevents concurrent changes by other commands. Logins
 * have a separate lock, because a command that holds it can change settings. The wait for the settings lock cannot be
 * interrupted, because it is short.
 *
 * @param change  reads and writes the file
 * @throws UsageError, Unreachable  see `withLock`
 */
export function changeSettings(settingsDir: string, change: () => void): Promise<void> {
  const lock = { path: join(settingsDir, 'settings.lock'), resource: 'the settings' }
  return withLock(lock, new AbortController().signal, async () => change())
}

/** Changes the stored profiles atomically. */
export function changeProfiles(settingsDir: string, change: (stored: StoredProfiles) => void): Promise<void> {
  return changeSettings(settingsDir, () => {
    const stored = readProfiles(settingsDir)
    change(stored)
    writeSettings(profilesPath(settingsDir), stored)
  })
}

/** Stores the default workspace for the runtime of a profile; `undefined` removes it. */
export function setDefaultWorkspace(profile: Profile, workspaceId: string | undefined): Promise<void> {
  return changeProfiles(profile.settingsDir, ({ profiles }) => {
    const stored = profiles[profile.name] ?? { workspaces: {} }
    profiles[profile.name] = stored
    if (workspaceId === undefined) delete stored.workspaces[runtimeKey(profile)]
    else stored.workspaces[runtimeKey(profile)] = workspaceId
  })
}
