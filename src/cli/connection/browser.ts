import { Unreachable } from '../../client/unreachable.ts'
import { hasBrowser } from '../environment.ts'
import type { Io } from '../io.ts'
import { findLocalServer } from '../local.ts'
import type { Profile } from '../settings/profile.ts'
import type { Output } from '../terminal/output.ts'

/** Pages that a runtime has, by the word that `wb open` takes. */
export const browserPages = { docs: '/docs', api: '/api/v1/openapi.json' } as const

/**
 * The address at which browsers reach the runtime of a profile.
 *
 * @throws Unreachable  none was named, and nothing serves the data directory
 */
export async function browserUrl({ url, dataDir }: Profile): Promise<string> {
  const found = url ?? (await findLocalServer(dataDir))?.url
  if (found === undefined) throw new Unreachable(`no server is running for ${dataDir}`, 'wb serve --open')
  return found
}

/**
 * Open a page where there is a browser to open it in. It is for the caller to have shown the address.
 *
 * @returns false where that was left to the person: over SSH, without a display, in CI, or as nobody looks at stdout
 */
export async function openPage(url: string, io: Io, output: Output): Promise<boolean> {
  return output.interactive && openLink(url, io)
}

/** The same, whoever looks. */
export async function openLink(url: string, io: Io): Promise<boolean> {
  if (!/^https?:\/\//i.test(url) || !hasBrowser(io.env)) return false
  return io.openBrowser(url).then(
    () => true,
    () => false,
  )
}
