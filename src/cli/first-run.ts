import { readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, parse } from 'node:path'
import { agree } from './ask.ts'
import { isCi, type Profile, readProfile } from './profile.ts'
import { plainLine } from './terminal-text.ts'

/**
 * Ask who types `wb` alone, and has nothing yet, whether this folder shall be searched. A home folder and the root of a
 * disk are nobody's documents, and are not offered.
 */
export async function wantsThisFolder(): Promise<boolean> {
  const folder = process.cwd()
  if (isCi() || folder === homedir() || folder === parse(folder).root || !isUntouched(readProfile({})))
    return false
  const question = `Nothing is here to search yet. Read the folder ${plainLine(basename(folder))} and search it?`
  return agree(question, new AbortController().signal, false)
}

/** True where no runtime is named and none has ever kept anything. */
function isUntouched({ url, config, dataDir }: Profile): boolean {
  return url === undefined && config.variable === undefined && isEmpty(dataDir)
}

function isEmpty(folder: string): boolean {
  try {
    return readdirSync(folder).length === 0
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}
