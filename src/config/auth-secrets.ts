import { WbError } from '../contract/errors.ts'
import type { Problem } from './checks.ts'
import type { Environment } from './environment.ts'
import type { Config } from './schema.ts'
import { resolveSecret } from './secret-ref.ts'

/** The secrets of the `auth` block, read once when a runtime starts. */
export interface AuthSecrets {
  readonly bootstrapToken: string | undefined
  readonly clientSecret: string | undefined
  /** The first one encrypts, all of them decrypt; none is a key of this process alone. */
  readonly sessionSecrets: readonly string[]
}

/** How long a secret must be, and how that is counted. */
interface Least {
  readonly min: number
  readonly unit: string
  measure(secret: string): number
}

const bootstrapLeast: Least = { min: 32, unit: 'characters', measure: secret => [...secret].length }
const sessionLeast: Least = { min: 32, unit: 'bytes', measure: secret => Buffer.byteLength(secret) }
const makeOne = 'Make one with: openssl rand -hex 32'

/**
 * @throws validation_error  a reference leads to nothing, or to a secret that is too short; `facts.problems` names
 *                           every such key, the message the first
 * @see specification 2.2
 */
export function authSecrets({ auth }: Pick<Config, 'auth'>, environment: Environment): AuthSecrets {
  const client = auth.oidc?.client
  const problems: (Problem & { hint: string })[] = []
  const read = (key: string, ref: string | null | undefined, least?: Least) => {
    if (ref == null) return undefined
    try {
      const secret = resolveSecret(ref, environment)
      if (!least || least.measure(secret) >= least.min) return secret
      problems.push({
        key,
        message: `the secret must have at least ${least.min} ${least.unit}`,
        hint: makeOne,
      })
    } catch (error) {
      if (!(error instanceof WbError)) throw error
      problems.push({ key, message: error.message, hint: error.hint })
    }
    return undefined
  }

  const secrets = {
    bootstrapToken: read('auth.bootstrapTokenRef', auth.bootstrapTokenRef, bootstrapLeast),
    clientSecret: read('auth.oidc.client.clientSecretRef', client?.clientSecretRef),
    sessionSecrets: [client?.sessionSecretRef ?? []]
      .flat()
      .map(ref => read('auth.oidc.client.sessionSecretRef', ref, sessionLeast))
      .filter(secret => secret !== undefined),
  }
  if (problems.length > 0) throw refusal(problems)
  return secrets
}

function refusal(problems: readonly (Problem & { hint: string })[]): WbError {
  const [{ key, message, hint }] = problems as [Problem & { hint: string }]
  return new WbError('validation_error', `${key}: ${message}`, {
    hint,
    problems: problems.map(problem => ({ key: problem.key, message: problem.message })),
  })
}
