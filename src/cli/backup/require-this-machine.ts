import { UsageError } from '../errors.ts'
import type { Profile } from '../settings/profile.ts'

/**
 * Checks that a command uses the data directory of this machine.
 *
 * @param action  "a backup"
 * @throws UsageError  the profile or a flag selects a runtime by its address
 */
export function requireThisMachine({ url, urlSource }: Profile, action: string): void {
  if (url !== undefined)
    throw new UsageError(
      `${action} needs the data directory of the runtime, but ${urlSource} selects ${url}`,
      ['Run the command on the machine of the runtime, with --local.'],
    )
}
