import { connect } from '../client/client.ts'
import { auth } from '../contract/auth.ts'
import { type Announcement, findLocalServer } from './local.ts'
import { overNetwork } from './over-network.ts'
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
  try {
    const server = profile.asOperator ? await findLocalServer(profile.dataDir) : undefined
    return server ? await askServer(server) : await ask({ baseUrl, fetch }, kind !== 'process')
  } catch {
    return undefined
  }
}

async function askServer(server: Announcement): Promise<WaysIn> {
  const { fetch, close } = overNetwork(server, {})
  try {
    return await ask({ baseUrl: server.url, fetch }, true)
  } finally {
    await close()
  }
}

async function ask(runtime: Pick<ResolvedRuntime, 'baseUrl' | 'fetch'>, isServer: boolean): Promise<WaysIn> {
  const { modes, loginPath } = await connect(runtime).call(auth.config, {})
  return { modes, loginPath, isServer }
}
