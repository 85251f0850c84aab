import { shellWord } from '../../base/shell-word.ts'
import type { Profile } from './profile.ts'

/** Returns the command that signs in to the runtime of a profile. */
export function loginCommand(profile: Profile, more = ''): string {
  const target = profile.url === undefined ? '' : ` ${shellWord(profile.url)}`
  return `wb login${target}${profileFlag(profile)}${more}`
}

/** Returns the flag that selects the runtime of this profile, with a leading space; empty if none is needed. */
export function profileFlag({ name, nameFrom, local }: Profile): string {
  if (local) return ' --local'
  return nameFrom === 'wb profiles use' ? '' : ` --profile ${name}`
}
