import { WbError } from '../contract/errors.ts'
import { type Problem, usesOidc } from './checks.ts'
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

/** What is wrong with a secret; undefined for one that will do. */
type Fault = (secret: string) => string | undefined

const bootstrapCharsMin = 32
const sessionBytesMin = 32

/** Characters are counted, as a person counts them; and a header must be able to carry it. */
const bootstrapFault: Fault = secret => {
  if ([...secret].length < bootstrapCharsMin) return `must have at least ${bootstrapCharsMin} characters`
  return /[\s,\p{Cc}]/u.test(secret) ? 'must hold no white space and no comma' : undefined
}
const sessionFault: Fault = secret =>
  Buffer.byteLength(secret) < sessionBytesMin ? `must have at least ${sessionBytesMin} bytes` : undefined

const makeOne = 'Make one with: openssl rand -hex 32'

/**
 * The secrets that this mode uses; those of an identity provider that nobody signs in with are left alone.
 *
 * @throws validation_error  a reference leads to nothing, or to a secret that is too short; `facts.problems` names
 *                           every such key, the message the first
 * @see docs/requirements.md#S2.2-34
 */
export function authSecrets(config: Pick<Config, 'auth'>, environment: Environment): AuthSecrets {
  const { secrets, problems } = readSecrets(config, environment)
  if (problems.length > 0) throw refusal(problems)
  return secrets
}

/**
 * The same without those that will not do: a command beside a server need not know what the server was started with.
 */
export function secretsAtHand(config: Pick<Config, 'auth'>, environment: Environment): AuthSecrets {
  return readSecrets(config, environment).secrets
}

function readSecrets({ auth }: Pick<Config, 'auth'>, environment: Environment) {
  const client = usesOidc(auth) ? auth.oidc?.client : null
  const { read, problems } = reader(environment)
  const secrets: AuthSecrets = {
    bootstrapToken: read('auth.bootstrapTokenRef', auth.bootstrapTokenRef, bootstrapFault),
    clientSecret: read('auth.oidc.client.clientSecretRef', client?.clientSecretRef),
    sessionSecrets: sessionRefs(client?.sessionSecretRef ?? [])
      .map(([key, ref]) => read(key, ref, sessionFault))
      .filter(secret => secret !== undefined),
  }
  return { secrets, problems }
}

/** Each reference with its key, which has a number only in a list. */
function sessionRefs(refs: string | readonly string[]): [key: string, ref: string][] {
  const key = 'auth.oidc.client.sessionSecretRef'
  return typeof refs === 'string' ? [[key, refs]] : refs.map((ref, at) => [`${key}[${at}]`, ref])
}

interface Unusable extends Problem {
  hint: string | undefined
}

/** Reads secrets, and collects those that will not do. */
function reader(environment: Environment) {
  const problems: Unusable[] = []
  function read(key: string, ref: string | null | undefined, faultOf?: Fault): string | undefined {
    if (ref == null) return undefined
    try {
      const secret = resolveSecret(ref, environment)
      const fault = faultOf?.(secret)
      if (fault === undefined) return secret
      problems.push({ key, message: `the secret ${fault}`, hint: makeOne })
    } catch (error) {
      if (!(error instanceof WbError)) throw error
      problems.push({ key, message: error.message, hint: error.hint })
    }
    return undefined
  }
  return { read, problems }
}

function refusal(problems: readonly Unusable[]): WbError {
  const [{ key, message, hint }] = problems as [Unusable]
  return new WbError('validation_error', `${key}: ${message}`, {
    hint,
    problems: problems.map(problem => ({ key: problem.key, message: problem.message })),
  })
}
