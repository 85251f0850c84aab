import type { Clock } from '../../base/clock.ts'
import { shellWord } from '../../base/shell-word.ts'
import { configuredIdentityProvider } from '../local.ts'
import type { Profile } from '../settings/profile.ts'
import { type Finding, failed, skipped } from './check.ts'
import { type ClockSkew, clockSkewFinding, measureClockSkew } from './clock.ts'
import type { ValidatedConfig } from './validate-config.ts'

/** Checks that the configured identity provider responds, and compares its clock. */
export async function checkIdentityProvider(
  profile: Profile,
  { local }: ValidatedConfig,
  clock: Clock,
  signal: AbortSignal,
): Promise<Finding> {
  // @see docs/requirements.md#S5.8-02
  if (profile.url !== undefined) return skipped('a remote runtime does not report its identity provider')
  if (!local) return skipped('the configuration cannot be read')
  const provider = await configuredIdentityProvider(local)
  if (!provider) return skipped('no identity provider is configured')
  let skew: ClockSkew | undefined
  try {
    skew = await measureClockSkew(clock, () => provider.date(signal))
  } catch {
    return failed(`${provider.issuer} does not respond`, `curl -v ${shellWord(provider.url.href)}`)
  }
  return clockSkewFinding(skew, provider.issuer)
}
