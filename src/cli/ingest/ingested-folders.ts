import { dirname, join } from 'node:path'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { readableStatsOf } from '../readable-stats-of.ts'
import { type Profile, runtimeKey } from '../settings/profile.ts'
import { readSettings, withoutPrototype, writeSettings } from '../settings/settings-file.ts'

/** Maximum number of folders that are stored for a knowledge base. */
const foldersMax = 8
/** Maximum number of knowledge bases whose folders are stored. */
const basesMax = 64

type StoredFolders = Record<string, readonly string[]>

function foldersPath(profile: Profile): string {
  return join(profile.settingsDir, 'ingested-folders.json')
}

function read(profile: Profile): StoredFolders {
  const content = readSettings(foldersPath(profile))
  return typeof content === 'string' ? withoutPrototype({}) : (content as StoredFolders)
}

function keyOf(profile: Profile, { knowledgeBaseId }: Pick<KnowledgeBase, 'knowledgeBaseId'>): string {
  return `${runtimeKey(profile)} ${knowledgeBaseId}`
}

/** Returns the folders on this machine that were ingested into a knowledge base, the newest first. */
export type FoldersOf = (base: Pick<KnowledgeBase, 'knowledgeBaseId'>) => readonly string[]

/** Reads the stored folders. A file that other users can write to counts as empty. */
export function readIngestedFolders(profile: Profile): FoldersOf {
  let stored: StoredFolders = {}
  try {
    stored = read(profile)
  } catch {}
  return base => {
    const folders = stored[keyOf(profile, base)]
    return Array.isArray(folders) ? folders.filter(folder => typeof folder === 'string') : []
  }
}

/**
 * Stores the folders to which the file names of an ingest are relative, so that citations can link to the files. The runtime does
 * not get these paths. Does nothing if the settings folder is not writable.
 *
 * @param paths  absolute paths of files and folders; others are ignored
 */
export function storeIngestedFolders(
  profile: Profile,
  base: Pick<KnowledgeBase, 'knowledgeBaseId'>,
  paths: readonly string[],
): void {
  const added = new Set(paths.flatMap(path => folderOf(path) ?? []))
  if (added.size === 0) return
  const key = keyOf(profile, base)
  try {
    const { [key]: earlier = [], ...others } = read(profile)
    const folders = [...added, ...earlier.filter(folder => !added.has(folder))].slice(0, foldersMax)
    writeSettings(
      foldersPath(profile),
      Object.fromEntries([...Object.entries(others), [key, folders]].slice(-basesMax)),
    )
  } catch {}
}

function folderOf(path: string): string | undefined {
  const found = readableStatsOf(path)
  if (found?.isDirectory()) return path
  return found?.isFile() ? dirname(path) : undefined
}
