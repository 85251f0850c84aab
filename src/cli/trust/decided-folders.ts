import { surveyFolder } from '../local.ts'
import { isUnchanged, readDecisions } from './decisions.ts'

/** A folder with a trust decision, and its current state. */
export interface DecidedFolder {
  readonly folder: string
  readonly state: 'trusted' | 'not trusted' | 'changed'
  /** Files that the decision covers. */
  readonly files: readonly string[]
  /** Time in ISO 8601. */
  readonly decidedAt: string
}

export async function listDecidedFolders(settingsDir: string): Promise<DecidedFolder[]> {
  const rows = Object.entries(readDecisions(settingsDir)).map(
    async ([folder, { trusted, decidedAt, files }]): Promise<DecidedFolder> => {
      const now = await surveyFolder(folder)
      const isAsDecided = now.fault === undefined && isUnchanged(files, now.files)
      const state = isAsDecided ? (trusted ? 'trusted' : 'not trusted') : 'changed'
      return { folder, state, files: Object.keys(files), decidedAt }
    },
  )
  return Promise.all(rows)
}
