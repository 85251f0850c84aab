import domino, { type PageDocument } from '@mixmark-io/domino'
import { robotName, urlCharsMax, withoutFragment } from './fetch-page.ts'

/** Maximum number of links of a page that are followed. */
const linksMax = 10_000

/** Length of the start of a page that is read, so that a large page does not block the command. */
const htmlCharsMax = 5_000_000
/** Longer titles are cut. */
const titleCharsMax = 500

/** Metadata and links of a page. */
export interface PageContent {
  readonly title: string | null
  /** Canonical URL that the page declares; null if it declares no such URL. */
  readonly canonical: URL | null
  /** Pages that it links to, without fragments; empty for a page with `nofollow`. */
  readonly links: readonly URL[]
  /** True for a page with `noindex`. */
  readonly isNoindex: boolean
}

/** Reads title, links and instructions for robots. Returns undefined for a page that is nested too deeply. */
export function readPageContent(
  html: string,
  url: URL,
  robotsHeader: string | null,
): PageContent | undefined {
  try {
    return contentOf(domino.createDocument(html.slice(0, htmlCharsMax)), url, robotsHeader)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function contentOf(document: PageDocument, url: URL, robotsHeader: string | null): PageContent {
  const base = parseUrl(document.querySelector('base[href]')?.getAttribute('href'), url) ?? url
  const instructions = new Set([...metaInstructions(document), ...headerInstructions(robotsHeader)])
  const isNofollow = instructions.has('nofollow') || instructions.has('none')
  const canonical = parseUrl(
    document.querySelector('link[rel~="canonical"][href]')?.getAttribute('href'),
    base,
  )
  return {
    title: document.title.replace(/\s+/g, ' ').trim().slice(0, titleCharsMax) || null,
    canonical,
    links: isNofollow ? [] : linksOf(document, base),
    isNoindex: instructions.has('noindex') || instructions.has('none'),
  }
}

function linksOf(document: PageDocument, base: URL): URL[] {
  const links = new Map<string, URL>()
  for (const element of Array.from(document.querySelectorAll('a[href], area[href]'))) {
    if (/\bnofollow\b/i.test(element.getAttribute('rel') ?? '')) continue
    const url = parseUrl(element.getAttribute('href'), base)
    if (url) links.set(url.href, url)
    if (links.size === linksMax) break
  }
  return [...links.values()]
}

/** Returns a web address without its fragment; null for other URLs. */
function parseUrl(text: string | null | undefined, base: URL): URL | null {
  if (text == null || text.length > urlCharsMax || !URL.canParse(text, base.href)) return null
  const url = withoutFragment(new URL(text, base))
  return /^https?:$/.test(url.protocol) ? url : null
}

/** Returns true if the header `X-Robots-Tag` of a file contains `noindex`. */
export function isNoindex(robotsHeader: string | null): boolean {
  return [...headerInstructions(robotsHeader)].some(instruction => /^(?:noindex|none)$/.test(instruction))
}

function* metaInstructions(document: PageDocument): Generator<string> {
  for (const element of Array.from(document.querySelectorAll('meta[name][content]'))) {
    const name = element.getAttribute('name')!.trim().toLowerCase()
    if (name === 'robots' || name === robotName) yield* splitInstructions(element.getAttribute('content')!)
  }
}

/** Yields the instructions of the header `X-Robots-Tag`, which can be limited to one robot: `otherbot: noindex`. */
function* headerInstructions(header: string | null): Generator<string> {
  for (const part of header?.split(',') ?? []) {
    const [, robot, instruction] = /^\s*(?:([\w-]+)\s*:)?(.*)$/.exec(part) ?? []
    if (robot === undefined || robot.toLowerCase() === robotName) yield* splitInstructions(instruction!)
  }
}

function splitInstructions(text: string): string[] {
  return text.toLowerCase().split(/[\s,]+/)
}
