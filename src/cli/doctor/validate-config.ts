import { WbError } from '../../contract/errors.ts'
import type { Io } from '../io.ts'
import { type LocalConfig, readConfig, secretProblems } from '../local.ts'
import type { Profile } from '../settings/profile.ts'

export interface ConfigProblem {
  /** Dotted key; empty if the problem is with the whole file. */
  readonly key: string
  readonly message: string
}

/** Errors and warnings of the configuration in use. */
export interface ValidatedConfig {
  /** Undefined if the configuration cannot be read. */
  readonly local?: LocalConfig
  readonly problems: readonly ConfigProblem[]
  readonly warnings: readonly string[]
}

export async function validateConfig(profile: Profile, io: Io): Promise<ValidatedConfig> {
  try {
    const local = await readConfig(profile, io)
    const problems = [...local.unsupported, ...(await secretProblems(local))]
    return { local, problems, warnings: local.warnings }
  } catch (error) {
    if (!(error instanceof WbError) || error.code !== 'validation_error') throw error
    const { problems } = error.facts
    return {
      problems: Array.isArray(problems) ? problems : [{ key: '', message: error.message }],
      warnings: [],
    }
  }
}
