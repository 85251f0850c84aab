import { isAbsolute, relative, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { readableStatsOf } from '../readable-stats-of.ts'
import type { Passage } from './find-passages.ts'

const webPage = /^https?:\/\//

/**
 * Returns the URL at which the source of a passage can be opened: that of its web page, or that of its file with its page, for
 * example `file:///home/ann/docs/handbook.pdf#page=12`.
 *
 * @param folders  folders that can contain the file, the preferred ones first
 */
export function sourceAddress(
  { document, place }: Pick<Passage, 'document' | 'place'>,
  folders: readonly string[],
): string | undefined {
  const source = document?.sourceFilename
  if (!source) return undefined
  if (webPage.test(source)) return URL.canParse(source) ? new URL(source).href : undefined
  const path = folders.map(folder => fileIn(folder, source)).find(found => found !== undefined)
  if (path === undefined) return undefined
  const url = pathToFileURL(path)
  if (place?.kind === 'page') url.hash = `page=${place.value}`
  return url.href
}

/** Returns the path of a file in a folder; undefined if it does not exist there. */
function fileIn(folder: string, name: string): string | undefined {
  const path = resolve(folder, name)
  const within = relative(folder, path)
  if (within.split(sep)[0] === '..' || isAbsolute(within)) return undefined
  return readableStatsOf(path)?.isFile() ? path : undefined
}
