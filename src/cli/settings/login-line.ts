import { shellWord } from '../terminal/shell-word.ts'
import type { Profile } from './profile.ts'

/** The line that signs in where a profile is. */
export function loginLine(profile: Profile, more = ''): string {
  const target = profile.url === undefined ? '' : ` ${shellWord(profile.url)}`
  return `wb login${target}${profileFlag(profile)}${more}`
}

/** What a line needs to mean this profile, where another is in use. */
export function profileFlag({ name, nameFrom }: Profile): string {
  return nameFrom === 'wb profiles use' ? '' : ` --profile ${name}`
}
