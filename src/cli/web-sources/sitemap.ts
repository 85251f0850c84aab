import { gunzipSync } from 'node:zlib'
import { SaxesParser } from 'saxes'
import { pageBytesMax } from './fetch-page.ts'
import { SourceProblem } from './source-problem.ts'

/** Maximum number of URLs in a sitemap. @see https://www.sitemaps.org/protocol.html#index */
const entriesMax = 50_000

/** Pages of a sitemap, and other sitemaps that it lists. */
export interface Sitemap {
  readonly pages: readonly string[]
  readonly sitemaps: readonly string[]
}

/** Returns true if bytes look like a sitemap, which can be compressed. */
export function isSitemap(bytes: Buffer): boolean {
  try {
    return /<(?:\w+:)?(?:urlset|sitemapindex)[\s>]/.test(
      unpackSitemap(bytes).subarray(0, 4_096).toString('latin1'),
    )
  } catch {
    return false
  }
}

/**
 * Reads a sitemap or a sitemap index, or a text with one URL per line. Entities that the document declares are not
 * expanded.
 *
 * @throws SourceProblem  it is damaged or too large
 */
export function parseSitemap(bytes: Buffer): Sitemap {
  const text = unpackSitemap(bytes).toString('utf8')
  if (!text.trimStart().startsWith('<'))
    return { pages: text.split(/\s+/).filter(Boolean).slice(0, entriesMax), sitemaps: [] }
  const pages: string[] = []
  const sitemaps: string[] = []
  const path: string[] = []
  let location = ''
  const parser = new SaxesParser()
  parser.on('error', error => {
    throw error
  })
  parser.on('opentag', ({ name }) => {
    path.push(name.replace(/^.*:/, ''))
    location = ''
  })
  const addText = (piece: string) => {
    if (path.at(-1) === 'loc') location += piece
  }
  parser.on('text', addText)
  parser.on('cdata', addText)
  parser.on('closetag', () => {
    const [parent, name] = path.slice(-2)
    path.pop()
    const list = parent === 'url' ? pages : parent === 'sitemap' ? sitemaps : undefined
    if (name === 'loc' && list && list.length < entriesMax) list.push(location.trim())
  })
  try {
    parser.write(text.replace(/^\uFEFF/, '')).close()
  } catch {
    throw new SourceProblem('extraction_failed', 'the sitemap is damaged')
  }
  return { pages, sitemaps }
}

/** @throws SourceProblem  the data is damaged or too large */
function unpackSitemap(bytes: Buffer): Buffer {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes
  try {
    return gunzipSync(bytes, { maxOutputLength: pageBytesMax })
  } catch {
    throw new SourceProblem('extraction_failed', 'the sitemap is damaged, or too large')
  }
}
