import { readdirSync } from 'node:fs'
import { basename, parse } from 'node:path'
import { homeFolder, isCi } from '../environment.ts'
import type { Io } from '../io.ts'
import { findLocalServer, holdsNothing } from '../local.ts'
import { type Profile, readProfile } from '../settings/profile.ts'
import { agree } from '../terminal/ask.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/**
 * Ask who types `wb` alone, and has nothing yet, whether this folder shall be searched. A home folder and the root of a
 * disk are nobody's documents, and are not offered.
 */
export async function wantsThisFolder(io: Io): Promise<boolean> {
  const { cwd: folder, env } = io
  if (isCi(env) || folder === homeFolder(env) || folder === parse(folder).root) return false
  if (!(await isUntouched(readProfile({}, io)))) return false
  const question = `Nothing is here to search yet. Read the folder ${plainLine(basename(folder))} and search it?`
  return agree(io, question, new AbortController().signal, false)
}

/** True where no runtime is named and none has ever kept anything. */
async function isUntouched({ url, config, dataDir }: Profile): Promise<boolean> {
  if (url !== undefined || config.variable !== undefined || !isBare(dataDir)) return false
  return (await findLocalServer(dataDir)) === undefined && holdsNothing(dataDir)
}

/** What any command makes in a data directory that only asks something there. */
const madeByAsking = /^workbase\.db(?:-wal|-shm|\.id)?$|^serve\.lock$|^uploads$/

function isBare(folder: string): boolean {
  try {
    return readdirSync(folder).every(name => madeByAsking.test(name))
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}
