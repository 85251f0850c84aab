import { surveyFolder } from '../local.ts'
import { isUnchanged, readDecisions } from './decisions.ts'

/** The trust decision about a folder, compared with the current files of the folder. */
export interface TrustDecisionStatus {
  readonly folder: string
  /** `changed` if the files have changed since the decision, which then has no effect. */
  readonly state: 'trusted' | 'not trusted' | 'changed'
  /** Files that the decision covers. */
  readonly files: readonly string[]
  /** Time of the decision, in ISO 8601. */
  readonly decidedAt: string
}

/** Returns all trust decisions, with their current state. */
export async function listTrustDecisions(settingsDir: string): Promise<TrustDecisionStatus[]> {
  const rows = Object.entries(readDecisions(settingsDir)).map(
    async ([folder, { trusted, decidedAt, files }]): Promise<TrustDecisionStatus> => {
      const survey = await surveyFolder(folder)
      const isCurrent = survey.fault === undefined && isUnchanged(files, survey.files)
      const state = isCurrent ? (trusted ? 'trusted' : 'not trusted') : 'changed'
      return { folder, state, files: Object.keys(files), decidedAt }
    },
  )
  return Promise.all(rows)
}
