import { connectableHost } from '../../base/loopback.ts'
import type { Io } from '../io.ts'
import { readConfig } from '../local.ts'
import type { Profile } from '../settings/profile.ts'

/**
 * Returns the address that `wb serve` would use, according to the configuration.
 *
 * @throws WbError validation_error  see `readConfig`
 */
export async function configuredServerUrl(profile: Profile, io: Io): Promise<string> {
  const { publicOrigin, host, port } = (await readConfig(profile, io)).config.runtime
  return publicOrigin ?? `http://${connectableHost(host)}:${port}`
}
