import { shellWord } from '../../base/shell-word.ts'
import type { Client } from '../../client/client.ts'
import { WbError } from '../../contract/errors.ts'
import { hostOfProviderKey, isProviderName, providers } from '../../contract/providers.ts'
import { type SecretRelease, secretReleases } from '../../contract/releases.ts'
import type { Service } from './service-types.ts'

/** A secret reference, and the host to which the secret would be sent. */
export interface SecretUse {
  readonly ref: string
  readonly host: string
}

/**
 * Returns the secret that a service would send, and the host. Returns undefined if the service sends no secret, or
 * every workspace may send it to this host.
 */
export function secretUseOf({ record }: Service): SecretUse | undefined {
  const ref = record.credentialRef
  const provider = String(record.provider)
  const address = record.endpointBaseUrl ?? (isProviderName(provider) ? providers[provider].baseUrl : null)
  if (typeof ref !== 'string' || typeof address !== 'string') return undefined
  const { host } = new URL(address)
  return hostOfProviderKey.get(ref) === host ? undefined : { ref, host }
}

/** Returns the command that releases a secret. */
export function releaseCommand({ ref, host }: SecretUse): string {
  return `wb services allow ${shellWord(ref)} --host ${shellWord(host)}`
}

/**
 * Releases a secret to one workspace, or to all workspaces if the ID is null.
 *
 * @returns undefined if the secret is already released
 */
export async function releaseSecret(
  client: Client,
  { ref, host }: SecretUse,
  workspaceId: string | null,
): Promise<SecretRelease | undefined> {
  try {
    return await client.call(secretReleases.create, { body: { ref, host, workspaceId } })
  } catch (error) {
    if (error instanceof WbError && error.code === 'conflict') return undefined
    throw error
  }
}

/** Returns true if the error means that the caller does not have the permission to release secrets. */
export function isPermissionError(error: unknown): boolean {
  return error instanceof WbError && ['unauthorized', 'forbidden'].includes(error.code)
}
