import { WbError } from '../contract/errors.ts'
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

const bootstrapCharsMin = 32
const sessionBytesMin = 32

/**
 * @throws validation_error  a reference leads to nothing, or to a secret that is too short; the message names its key
 * @see specification 2.2
 */
export function authSecrets({ auth }: Pick<Config, 'auth'>, environment: Environment): AuthSecrets {
  const client = auth.oidc?.client
  const read = (key: string, ref: string | null | undefined) =>
    ref == null ? undefined : resolved(key, ref, environment)

  const bootstrapToken = read('auth.bootstrapTokenRef', auth.bootstrapTokenRef)
  if (bootstrapToken !== undefined && [...bootstrapToken].length < bootstrapCharsMin)
    throw tooShort('auth.bootstrapTokenRef', `${bootstrapCharsMin} characters`)
  const sessionKey = 'auth.oidc.client.sessionSecretRef'
  const sessionSecrets = [client?.sessionSecretRef ?? []]
    .flat()
    .map(ref => resolved(sessionKey, ref, environment))
  if (sessionSecrets.some(secret => Buffer.byteLength(secret) < sessionBytesMin))
    throw tooShort(sessionKey, `${sessionBytesMin} bytes`)
  return {
    bootstrapToken,
    clientSecret: read('auth.oidc.client.clientSecretRef', client?.clientSecretRef),
    sessionSecrets,
  }
}

function resolved(key: string, ref: string, environment: Environment): string {
  try {
    return resolveSecret(ref, environment)
  } catch (error) {
    if (error instanceof WbError)
      throw new WbError(error.code, `${key}: ${error.message}`, { hint: error.hint })
    throw error
  }
}

function tooShort(key: string, atLeast: string): WbError {
  return new WbError('validation_error', `${key}: the secret must have at least ${atLeast}`, {
    hint: 'Make one with: openssl rand -hex 32',
  })
}
