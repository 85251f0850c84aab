import type { Clock } from '../../base/clock.ts'
import { shellWord } from '../../base/shell-word.ts'
import { identityProvider } from '../local.ts'
import type { Profile } from '../settings/profile.ts'
import { type Finding, failed, skipped } from './check.ts'
import { type Skew, skewFound, skewTo } from './clock.ts'
import type { CheckedConfig } from './config-problems.ts'

/** Checks that the configured identity provider responds, and compares its clock. */
export async function identityProviderFound(
  profile: Profile,
  { local }: CheckedConfig,
  clock: Clock,
  signal: AbortSignal,
): Promise<Finding> {
  // @see docs/requirements.md#S5.8-02
  if (profile.url !== undefined) return skipped('a runtime elsewhere does not tell who its provider is')
  if (!local) return skipped('the configuration cannot be read')
  const provider = await identityProvider(local)
  if (!provider) return skipped('none is configured')
  let skew: Skew | undefined
  try {
    skew = await skewTo(clock, () => provider.date(signal))
  } catch {
    return failed(`${provider.issuer} does not answer`, `curl -v ${shellWord(provider.url.href)}`)
  }
  return skewFound(skew, `${provider.issuer}, which answers`)
}
