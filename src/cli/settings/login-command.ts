import { shellWord } from '../../base/shell-word.ts'
import type { Profile } from './profile.ts'

/** Returns the command that signs in to the runtime of a profile. @param more  text to append, such as a flag */
export function loginCommand(profile: Profile, more = ''): string {
  const target = profile.url === undefined ? '' : ` ${shellWord(profile.url)}`
  return `wb login${target}${profileFlag(profile)}${more}`
}

/** Returns the flag that selects this profile, with a leading space; empty if no flag is needed. */
export function profileFlag({ name, nameSource, local }: Profile): string {
  if (local) return ' --local'
  return nameSource === 'wb profiles use' ? '' : ` --profile ${name}`
}
