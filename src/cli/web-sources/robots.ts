import robotsParser from 'robots-parser'
import { type FetchContext, fetchPage, HttpProblem, robotName } from './fetch-page.ts'

/** Size of the start of `robots.txt` that is read. @see RFC 9309 section 2.5 */
const robotsBytesMax = 512_000
/** Longest time between two pages of a host that a site can request. */
export const crawlDelayMaxMs = 30_000

/** Rules of a site for programs that read its pages. */
export interface SiteRules {
  allows(url: URL): boolean
  /** Time between two pages that the site requests; 0 if it requests none. */
  readonly delayMs: number
  readonly sitemaps: readonly string[]
}

const allowAll: SiteRules = { allows: () => true, delayMs: 0, sitemaps: [] }
const allowNone: SiteRules = { allows: () => false, delayMs: 0, sitemaps: [] }

/** Reads the file `robots.txt` of sites, once for each origin. @see RFC 9309 */
export class Robots {
  readonly #rules = new Map<string, Promise<SiteRules>>()

  constructor(private readonly context: FetchContext) {}

  rulesFor({ origin }: URL): Promise<SiteRules> {
    const rules = this.#rules.get(origin) ?? this.#read(origin)
    this.#rules.set(origin, rules)
    return rules
  }

  /**
   * Returns rules that allow everything if the site has no such file. If the server fails, returns rules that allow
   * nothing, as RFC 9309 section 2.3.1.4 requires.
   */
  async #read(origin: string): Promise<SiteRules> {
    const url = new URL('/robots.txt', origin)
    try {
      const page = await fetchPage(this.context, url)
      return 'bytes' in page ? parseRules(url, page.bytes.toString('utf8', 0, robotsBytesMax)) : allowAll
    } catch (error) {
      if (!(error instanceof HttpProblem)) throw error
      return error.status >= 500 || error.status === 429 ? allowNone : allowAll
    }
  }
}

function parseRules(url: URL, text: string): SiteRules {
  const robots = parse(url.href, text)
  const delayMs = (robots.getCrawlDelay(robotName) ?? 0) * 1_000
  return {
    allows: page => robots.isAllowed(page.href, robotName) !== false,
    delayMs: Number.isFinite(delayMs) ? Math.min(Math.max(0, delayMs), crawlDelayMaxMs) : 0,
    sitemaps: robots.getSitemaps(),
  }
}

// The package declares an ES module, but is a CommonJS module whose exports are the function.
const parse = robotsParser as unknown as typeof robotsParser.default
