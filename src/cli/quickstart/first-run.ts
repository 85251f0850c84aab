import { readdirSync } from 'node:fs'
import { basename, parse } from 'node:path'
import { homeFolder, isCi } from '../environment.ts'
import type { Io } from '../io.ts'
import { findLocalServer, isStoreEmpty } from '../local.ts'
import { type Profile, readProfile } from '../settings/profile.ts'
import { askYesNo } from '../terminal/ask.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/**
 * If Workbase has not been used before, asks the user whether to ingest and search the working directory. Does not ask
 * in CI, in the home folder or in the root of a disk.
 *
 * @returns true if the user agreed
 */
export async function offerQuickstart(io: Io): Promise<boolean> {
  const { cwd: folder, env } = io
  if (isCi(env) || folder === homeFolder(env) || folder === parse(folder).root) return false
  if (!(await isUnused(readProfile({}, io)))) return false
  const question = `You have no documents yet. Ingest the folder ${plainLine(basename(folder))} and search it?`
  return askYesNo(io, question, new AbortController().signal, false)
}

/** Returns true if no runtime is configured and the data directory is empty. */
async function isUnused({ url, config, dataDir }: Profile): Promise<boolean> {
  if (url !== undefined || config.variable !== undefined || !isEmptyDataDir(dataDir)) return false
  return (await findLocalServer(dataDir)) === undefined && isStoreEmpty(dataDir)
}

/** Files that commands create in a data directory even if they store no data. */
const emptyStoreFile = /^workbase\.db(?:-wal|-shm|\.id)?$|^serve\.lock$|^uploads$/

function isEmptyDataDir(folder: string): boolean {
  try {
    return readdirSync(folder).every(name => emptyStoreFile.test(name))
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}
