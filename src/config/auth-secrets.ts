import { WbError } from '../contract/errors.ts'
import { type ConfigKeyProblem, usesOidc } from './config-checks.ts'
import type { ConfigEnvironment } from './config-environment.ts'
import type { Config } from './schema.ts'
import { resolveSecret } from './secret-ref.ts'

/** Secrets of the `auth` block, read once at startup. */
export interface AuthSecrets {
  readonly bootstrapToken: string | undefined
  readonly clientSecret: string | undefined
  /**
   * Secrets for sessions. The first secret encrypts, and all secrets can decrypt. If the list is empty, a random key
   * is created for this process.
   */
  readonly sessionSecrets: readonly string[]
}

/** Returns the problem of a secret; undefined if it is usable. */
type SecretCheck = (secret: string) => string | undefined

const bootstrapCharsMin = 32
const sessionBytesMin = 32

/** Checks the length in Unicode characters, and that the token can be sent in a header. */
const checkBootstrapToken: SecretCheck = secret => {
  if ([...secret].length < bootstrapCharsMin) return `must have at least ${bootstrapCharsMin} characters`
  return /[\s,\p{Cc}]/u.test(secret) ? 'must not contain white space or commas' : undefined
}
const checkSessionSecret: SecretCheck = secret =>
  Buffer.byteLength(secret) < sessionBytesMin ? `must have at least ${sessionBytesMin} bytes` : undefined

const creationHint = 'Create one with: openssl rand -hex 32'

/**
 * Returns the secrets that the auth mode uses. The secrets of an unused identity provider are not read.
 *
 * @throws validation_error  when a reference cannot be resolved, or its secret is unusable; `facts.problems`
 *   lists every such key, and the message names the first one
 * @see docs/requirements.md#S2.2-34
 */
export function readAuthSecrets(config: Pick<Config, 'auth'>, environment: ConfigEnvironment): AuthSecrets {
  const { secrets, problems } = readSecrets(config, environment)
  if (problems.length > 0) throw unusableSecrets(problems)
  return secrets
}

/**
 * Like {@link readAuthSecrets}, but omits unusable secrets, because a command that runs on the machine of a server may
 * not have access to the secrets of the server.
 */
export function readUsableAuthSecrets(
  config: Pick<Config, 'auth'>,
  environment: ConfigEnvironment,
): AuthSecrets {
  return readSecrets(config, environment).secrets
}

function readSecrets({ auth }: Pick<Config, 'auth'>, environment: ConfigEnvironment) {
  const client = usesOidc(auth) ? auth.oidc?.client : null
  const { read, problems } = createSecretReader(environment)
  const secrets: AuthSecrets = {
    bootstrapToken: read('auth.bootstrapTokenRef', auth.bootstrapTokenRef, checkBootstrapToken),
    clientSecret: read('auth.oidc.client.clientSecretRef', client?.clientSecretRef),
    sessionSecrets: sessionRefs(client?.sessionSecretRef ?? [])
      .map(([key, ref]) => read(key, ref, checkSessionSecret))
      .filter(secret => secret !== undefined),
  }
  return { secrets, problems }
}

/** Returns each reference with its key. The key has an index if the references are a list. */
function sessionRefs(refs: string | readonly string[]): [key: string, ref: string][] {
  const key = 'auth.oidc.client.sessionSecretRef'
  return typeof refs === 'string' ? [[key, refs]] : refs.map((ref, index) => [`${key}[${index}]`, ref])
}

interface SecretProblem extends ConfigKeyProblem {
  hint: string | undefined
}

/** Returns a function that reads secrets, and the list to which it adds the problems of unusable secrets. */
function createSecretReader(environment: ConfigEnvironment) {
  const problems: SecretProblem[] = []
  function read(key: string, ref: string | null | undefined, check?: SecretCheck): string | undefined {
    if (ref == null) return undefined
    try {
      const secret = resolveSecret(ref, environment)
      const fault = check?.(secret)
      if (fault === undefined) return secret
      problems.push({ key, message: `the secret ${fault}`, hint: creationHint })
    } catch (error) {
      if (!(error instanceof WbError)) throw error
      problems.push({ key, message: error.message, hint: error.hint })
    }
    return undefined
  }
  return { read, problems }
}

function unusableSecrets(problems: readonly SecretProblem[]): WbError {
  const [{ key, message, hint }] = problems as [SecretProblem]
  return new WbError('validation_error', `${key}: ${message}`, {
    hint,
    problems: problems.map(problem => ({ key: problem.key, message: problem.message })),
  })
}
