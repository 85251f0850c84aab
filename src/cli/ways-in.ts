import { connect } from '../client/client.ts'
import { network } from '../client/transport.ts'
import { auth } from '../contract/auth.ts'
import { findLocalServer } from './local.ts'
import type { Profile } from './profile.ts'
import type { ResolvedRuntime } from './resolve-runtime.ts'

/** How callers prove who they are to a runtime, as it says itself. */
export interface WaysIn {
  readonly modes: { readonly apiKey: boolean; readonly oidc: boolean; readonly device: boolean }
  /** Where a browser signs in; null where none does. */
  readonly loginPath: string | null
  /** It is a server that said so, and not the configuration of this command. */
  readonly isServer: boolean
}

/**
 * Ask which ways in there are. An operator works beside the server of the data directory, which may run on another
 * configuration than this command; then the server is asked, as it is what callers meet.
 *
 * @returns undefined where nothing says so
 */
export async function waysIn(
  profile: Profile,
  { kind, baseUrl, fetch }: ResolvedRuntime,
): Promise<WaysIn | undefined> {
  const server = profile.asOperator ? await findLocalServer(profile.dataDir) : undefined
  const asked = server ? { baseUrl: server.url, fetch: network(server).fetch } : { baseUrl, fetch }
  try {
    const { modes, loginPath } = await connect(asked).call(auth.config, {})
    return { modes, loginPath, isServer: server !== undefined || kind !== 'process' }
  } catch {
    return undefined
  }
}
