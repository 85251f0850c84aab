import { shellWord } from '../../base/shell-word.ts'
import type { Profile } from './profile.ts'

/** Returns the command that signs in to the runtime of a profile. @param suffix  text to append, such as a flag */
export function loginCommand(profile: Profile, suffix = ''): string {
  const target = profile.url === undefined ? '' : ` ${shellWord(profile.url)}`
  return `wb login${target}${profileFlag(profile)}${suffix}`
}

/** Returns the flag that selects this profile, with a leading space; empty if no flag is needed. */
export function profileFlag({ name, nameSource, local }: Profile): string {
  if (local) return ' --local'
  return nameSource === 'wb profiles use' ? '' : ` --profile ${name}`
}
