import { Unreachable } from '../../client/unreachable.ts'
import { hasBrowser } from '../environment.ts'
import type { Io } from '../io.ts'
import { findLocalServer } from '../local.ts'
import type { Profile } from '../settings/profile.ts'
import type { Output } from '../terminal/output.ts'

/** Paths of the pages that `wb open` can open, by argument. */
export const browserPages = { docs: '/docs', api: '/api/v1/openapi.json' } as const

/**
 * Returns the address at which a browser can open the runtime of a profile.
 *
 * @throws Unreachable  no address is known, and no server is running
 */
export async function browserUrl({ url, dataDir }: Profile): Promise<string> {
  const address = url ?? (await findLocalServer(dataDir))?.url
  if (address === undefined) throw new Unreachable(`no server is running for ${dataDir}`, 'wb serve --open')
  return address
}

/**
 * Opens a page in a browser. The caller must also print the address.
 *
 * @returns false if no browser was opened: over SSH, without a display, in CI, or if stdout is not a terminal
 */
export async function openPage(url: string, io: Io, output: Output): Promise<boolean> {
  return output.interactive && openLink(url, io)
}

/** Like {@link openPage}, but also if stdout is not a terminal. */
export async function openLink(url: string, io: Io): Promise<boolean> {
  if (!/^https?:\/\//i.test(url) || !hasBrowser(io.env)) return false
  return io.openBrowser(url).then(
    () => true,
    () => false,
  )
}
