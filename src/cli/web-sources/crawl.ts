import { extensionOf } from '../../base/file-extension.ts'
import { pause } from '../../base/pause.ts'
import {
  type FetchContext,
  type FetchedPage,
  fetchPage,
  HttpProblem,
  type PageVersion,
  requireWebUrl,
  type UnchangedPage,
  withoutFragment,
} from './fetch-page.ts'
import { isNoindex, type PageContent, readPageContent } from './page-content.ts'
import { decodePage, isHtml } from './page-text.ts'
import { Robots } from './robots.ts'
import { isSitemap, parseSitemap } from './sitemap.ts'
import { SourceProblem } from './source-problem.ts'

/** Default for the maximum number of pages that one command reads. */
export const pagesDefault = 100
/** Shortest time between two requests, unless the site requests a longer one. */
const requestDelayMs = 200
/** Maximum `Retry-After` of a server, in milliseconds, that the crawl waits for. */
const retryWaitMaxMs = 30_000
const retriesMax = 2
/** Maximum number of bytes that one command reads. */
const totalBytesMax = 1_000_000_000
/** Maximum number of pages that wait to be read. Further links are not followed. */
const queuedMax = 50_000
const sitemapsMax = 200

/** Extensions of linked files that are not requested, because they contain no text. */
const withoutText =
  /^(?:png|jpe?g|gif|webp|avif|svg|ico|bmp|tiff?|mp[34]|m4[av]|ogg|wav|flac|webm|mov|avi|mkv|woff2?|ttf|otf|eot|css|m?js|map|wasm|exe|dmg|msi|deb|rpm|iso|zip|gz|tgz|bz2|xz|7z|rar|jar|whl|apk)$/
/** Media types of linked files that are not read. */
const typesWithoutText =
  /^(?:image|audio|video|font)\/|^text\/(?:css|javascript)$|javascript$|^application\/(?:zip|gzip|x-[\w.-]*(?:zip|tar|compressed)|wasm)$/

/** Pages to read. */
export interface CrawlSelection {
  readonly urls: readonly string[]
  /** Number of links to follow from each URL; 0 reads only the URL itself. */
  readonly depth: number
  /** True to read the pages in the sitemap of each URL's site. */
  readonly usesSitemap: boolean
  readonly pagesMax: number
}

export interface CrawlContext extends FetchContext {
  /** Returns the version of a page that is stored in the knowledge base. */
  readonly storedVersion: (url: URL) => PageVersion | undefined
  /** Replaces the shortest time between two requests. Set only in tests. */
  readonly delayMs?: number
  /** Replaces the maximum number of bytes that one command reads. Set only in tests. */
  readonly bytesMax?: number
}

/** A page that was read. */
export interface CrawledPage {
  readonly kind: 'page'
  /** URL of the document: the one that the page declares, or else the one that was read. */
  readonly url: string
  readonly title: string | null
  readonly bytes: Buffer
  readonly mediaType: string
  readonly version: PageVersion
  /** True if a page or a sitemap led to it. */
  readonly isLinked: boolean
}

export type CrawlItem =
  | CrawledPage
  | { readonly kind: 'unchanged'; readonly url: string }
  | {
      readonly kind: 'failed'
      readonly url: string
      readonly code: SourceProblem['code']
      readonly message: string
    }
  | {
      readonly kind: 'skipped'
      readonly url: string
      /** Category in which the page is counted, such as `disallowed pages`. */
      readonly category: string
      readonly reason: string
    }

/** A page that waits to be read. */
interface QueuedPage {
  readonly url: URL
  /** Number of links that can still be followed from this page. */
  readonly linksLeft: number
  /** Pages that its links can lead to; undefined for a URL of the selection, which can be redirected to any page. */
  readonly scope: Scope | undefined
}

/** Pages of one site, in one folder. */
interface Scope {
  readonly origin: string
  readonly folder: string
}

/** Yields the pages of the selection, and pages that they link to, in the same folder of the same site. */
export async function* crawl(context: CrawlContext, selection: CrawlSelection): AsyncGenerator<CrawlItem> {
  yield* new Crawler(context, selection).run()
}

class Crawler {
  readonly #robots: Robots
  readonly #queue: QueuedPage[] = []
  /** URLs that were queued, or under which a document was yielded. */
  readonly #seen = new Set<string>()
  readonly #names = new Set<string>()
  readonly #lastRequestMs = new Map<string, number>()
  #bytesLeft: number
  #pagesLeft: number

  constructor(
    private readonly context: CrawlContext,
    private readonly selection: CrawlSelection,
  ) {
    this.#robots = new Robots(context)
    this.#bytesLeft = context.bytesMax ?? totalBytesMax
    this.#pagesLeft = selection.pagesMax
  }

  async *run(): AsyncGenerator<CrawlItem> {
    const { urls, depth, usesSitemap } = this.selection
    for (const text of urls) {
      const url = withoutFragment(new URL(text))
      if (usesSitemap) yield* this.#queueSitemapOf(url)
      else this.#enqueue({ url, linksLeft: depth, scope: undefined })
    }
    for (let page = this.#queue.shift(); page; page = this.#queue.shift()) {
      this.context.signal.throwIfAborted()
      if (this.#pagesLeft-- > 0) yield* this.#read(page)
      else
        yield {
          kind: 'skipped',
          url: page.url.href,
          category: 'further pages',
          reason: `more than ${this.selection.pagesMax}; raise --max-pages`,
        }
    }
  }

  #enqueue(page: QueuedPage): void {
    if (this.#seen.has(page.url.href) || this.#queue.length >= queuedMax) return
    this.#seen.add(page.url.href)
    this.#queue.push(page)
  }

  /** Queues the pages of the sitemaps that `robots.txt` lists, or of `/sitemap.xml`. */
  async *#queueSitemapOf(url: URL): AsyncGenerator<CrawlItem> {
    try {
      requireWebUrl(url)
      const { sitemaps } = await this.#robots.rulesFor(url)
      const locations = toUrls(sitemaps.length > 0 ? sitemaps : ['/sitemap.xml'], url)
      const queuedBefore = this.#queue.length
      let hasFailed = false
      for await (const item of this.#queueSitemaps(locations, scopeOf(url), this.selection.depth)) {
        hasFailed = true
        yield item
      }
      if (!hasFailed && this.#queue.length === queuedBefore)
        throw new SourceProblem('extraction_failed', 'no sitemap of the site lists pages in this folder')
    } catch (error) {
      yield failure(url, error)
    }
  }

  async *#queueSitemaps(urls: readonly URL[], scope: Scope, linksLeft: number): AsyncGenerator<CrawlItem> {
    const waiting = [...urls]
    for (let count = 0; waiting.length > 0 && count < sitemapsMax; count++) {
      const url = waiting.shift()!
      try {
        const page = await this.#fetch({ url, linksLeft: 1, scope: undefined })
        if ('bytes' in page) waiting.push(...this.#queueSitemap(page, scope, linksLeft))
      } catch (error) {
        yield failure(url, error)
      }
    }
  }

  /** Queues the pages of a sitemap. Returns the sitemaps that it lists. */
  #queueSitemap({ bytes, url }: FetchedPage, scope: Scope, linksLeft: number): URL[] {
    const { pages, sitemaps } = parseSitemap(bytes)
    for (const page of toUrls(pages, url))
      if (isInScope(page, scope)) this.#enqueue({ url: page, linksLeft, scope })
    return toUrls(sitemaps, url)
  }

  async *#read(queued: QueuedPage): AsyncGenerator<CrawlItem> {
    const { url, scope, linksLeft } = queued
    const isLinked = scope !== undefined
    const extension = extensionOf(url.pathname)
    if (isLinked && withoutText.test(extension)) {
      this.#pagesLeft++
      yield { kind: 'skipped', url: url.href, category: `.${extension}`, reason: 'not supported' }
      return
    }
    try {
      const page = await this.#fetch(queued)
      if (!('bytes' in page)) {
        if (this.#takeName(page.url)) yield { kind: 'unchanged', url: page.url.href }
        return
      }
      if (scope === undefined && isSitemap(page.bytes)) {
        const siteScope = { origin: page.url.origin, folder: '/' }
        yield* this.#queueSitemaps(this.#queueSitemap(page, siteScope, linksLeft), siteScope, linksLeft)
      } else yield* this.#accept(page, scope ?? scopeOf(page.url), queued)
    } catch (error) {
      yield isLinked ? skippedOrFailed(url, error) : failure(url, error)
    }
  }

  /** Yields a page, and queues its links. */
  *#accept(
    page: FetchedPage,
    scope: Scope,
    { linksLeft, scope: requestedScope }: QueuedPage,
  ): Generator<CrawlItem> {
    const content = isHtml(page.mediaType)
      ? readPageContent(decodePage(page), page.url, page.robotsHeader)
      : undefined
    if (linksLeft > 0)
      for (const link of content?.links ?? [])
        if (isInScope(link, scope)) this.#enqueue({ url: link, linksLeft: linksLeft - 1, scope })
    if (content?.isNoindex ?? isNoindex(page.robotsHeader)) {
      yield {
        kind: 'skipped',
        url: page.url.href,
        category: 'pages with noindex',
        reason: 'the page asks not to be indexed',
      }
      return
    }
    const url = documentUrl(page, content, scope)
    if (!this.#takeName(url)) return
    yield {
      kind: 'page',
      url: url.href,
      title: content?.title ?? null,
      bytes: bytesToUpload(page),
      mediaType: page.mediaType,
      // The version of another URL would not be valid for this one.
      version: url.href === page.url.href ? page.version : { etag: null, lastModified: null },
      isLinked: requestedScope !== undefined,
    }
  }

  /** Returns false if a document with this URL was already yielded. */
  #takeName({ href }: URL): boolean {
    if (this.#names.has(href)) return false
    this.#names.add(href)
    this.#seen.add(href)
    return true
  }

  async #fetch({ url, scope, linksLeft }: QueuedPage): Promise<FetchedPage | UnchangedPage> {
    if (this.#bytesLeft <= 0)
      throw new SourceProblem('payload_too_large', 'the pages before it reached the total size limit')
    requireWebUrl(url)
    await this.#requireAllowed(url)
    for (let retries = 0; ; retries++) {
      await this.#waitForTurn(url)
      try {
        const page = await fetchPage(this.context, url, {
          // Links can only be followed if the page is read, even if it has not changed.
          ...(linksLeft === 0 && { storedVersion: this.context.storedVersion }),
          ...(scope && { acceptsType: type => !typesWithoutText.test(type) }),
          checkRedirect: async target => {
            if (scope && !isInScope(target, scope))
              throw new SourceProblem('address_refused', 'it redirects to another site or folder')
            await this.#requireAllowed(target)
          },
        })
        if ('bytes' in page) this.#bytesLeft -= page.bytes.length
        return page
      } catch (error) {
        const waitMs =
          error instanceof HttpProblem && [429, 503].includes(error.status) ? error.retryAfterMs : undefined
        if (waitMs === undefined || waitMs > retryWaitMaxMs || retries === retriesMax) throw error
        await pause(waitMs, this.context.signal)
      }
    }
  }

  /** @throws SourceProblem  `robots.txt` excludes the page, or cannot be read */
  async #requireAllowed(url: URL): Promise<void> {
    const rules = await this.#robots.rulesFor(url)
    if (!rules.allows(url)) throw new SourceProblem('robots_disallowed', 'robots.txt of the site excludes it')
  }

  /** Waits until the next request to a site is due. */
  async #waitForTurn(url: URL): Promise<void> {
    const { clock, signal, delayMs = requestDelayMs } = this.context
    const rules = await this.#robots.rulesFor(url)
    const due = (this.#lastRequestMs.get(url.origin) ?? 0) + Math.max(rules.delayMs, delayMs)
    const waitMs = due - clock.now()
    if (waitMs > 0) await pause(waitMs, signal)
    signal.throwIfAborted()
    this.#lastRequestMs.set(url.origin, clock.now())
  }
}

/** Returns the site and the folder of a page. */
function scopeOf(url: URL): Scope {
  return { origin: url.origin, folder: new URL('.', url).pathname }
}

function isInScope(url: URL, { origin, folder }: Scope): boolean {
  return url.origin === origin && url.pathname.startsWith(folder)
}

/** Returns the URL that a page declares if it is in the same folder, otherwise its own. */
function documentUrl({ url }: FetchedPage, content: PageContent | undefined, scope: Scope): URL {
  const canonical = content?.canonical
  return canonical && isInScope(canonical, scope) ? canonical : url
}

function toUrls(texts: readonly string[], base: URL): URL[] {
  return texts.flatMap(text => (URL.canParse(text, base.href) ? [withoutFragment(new URL(text, base))] : []))
}

/**
 * Returns the bytes of a page. Converts a text to UTF-8 if only the server knows its encoding, and marks HTML that does not
 * start like HTML, because the runtime recognizes it by its start.
 */
function bytesToUpload(page: FetchedPage): Buffer {
  const { bytes, mediaType, charset } = page
  const isText = mediaType.startsWith('text/') || isHtml(mediaType)
  const utf8 = isText && charset !== undefined ? Buffer.from(decodePage(page)) : bytes
  if (!isHtml(mediaType) || /<(?:!doctype html|html[\s>])/i.test(utf8.subarray(0, 1_024).toString('latin1')))
    return utf8
  return Buffer.concat([Buffer.from('<!doctype html>\n'), utf8])
}

function failure(url: URL, error: unknown): CrawlItem {
  if (!(error instanceof SourceProblem)) throw error
  return { kind: 'failed', url: withoutCredentials(url), code: error.code, message: error.message }
}

/** Returns a skipped item if a linked page must not be read. */
function skippedOrFailed(url: URL, error: unknown): CrawlItem {
  if (!(error instanceof SourceProblem)) throw error
  const skipped = (category: string, reason: string): CrawlItem => ({
    kind: 'skipped',
    url: withoutCredentials(url),
    category,
    reason,
  })
  switch (error.code) {
    case 'robots_disallowed':
      return skipped('disallowed pages', 'robots.txt')
    case 'address_refused':
      return skipped('links', 'to another site, or to a private address')
    case 'unsupported_file_type':
      return skipped('linked files', 'not supported')
    default:
      return failure(url, error)
  }
}

function withoutCredentials(url: URL): string {
  const copy = new URL(url)
  copy.username = ''
  copy.password = ''
  return copy.href
}
