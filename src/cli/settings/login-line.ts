import { shellWord } from '../../base/shell-word.ts'
import type { Profile } from './profile.ts'

/** The line that signs in where a profile is. */
export function loginLine(profile: Profile, more = ''): string {
  const target = profile.url === undefined ? '' : ` ${shellWord(profile.url)}`
  return `wb login${target}${profileFlag(profile)}${more}`
}

/** Returns the flag that selects the runtime of this profile, with a leading space; empty if none is needed. */
export function profileFlag({ name, nameFrom, local }: Profile): string {
  if (local) return ' --local'
  return nameFrom === 'wb profiles use' ? '' : ` --profile ${name}`
}
