import type { Profile } from './profile.ts'
import type { ResolvedRuntime } from './resolve-runtime.ts'

/**
 * What to type where a runtime does not know who is calling. What was typed is not repeated, as it may hold a
 * credential.
 *
 * @see design/security 8
 */
export function signingIn(profile: Profile, kind: ResolvedRuntime['kind']): string[] {
  const refused = profile.apiKey ? ['the key in WB_API_KEY does not hold there'] : []
  if (kind === 'named')
    return [
      ...refused,
      'WB_API_KEY=… in the environment says who you are',
      'wb keys create NAME    makes a key, for who may',
    ]
  return [
    ...refused,
    'wb keys create NAME --role admin --as-operator    makes a key, for WB_API_KEY',
    ...asOwner(kind),
  ]
}

/** What who owns the data directory may type where others are refused. */
export function asOwner(kind: ResolvedRuntime['kind']): string[] {
  return kind === 'named' ? [] : ['add --as-operator to act as the owner of the data directory']
}
