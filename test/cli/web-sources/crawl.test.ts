import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { packageVersion } from '../../../src/base/package.ts'
import { type CrawlItem, type CrawlSelection, crawl } from '../../../src/cli/web-sources/crawl.ts'
import { fetchPage, type PageVersion } from '../../../src/cli/web-sources/fetch-page.ts'
import { openPageNetwork } from '../../../src/models/page-network.ts'
import { listenOnLoopback } from '../../fakes/listen-on-loopback.ts'

interface Reply {
  status?: number
  headers?: Record<string, string>
  body?: string | Buffer
}

/** Content of a path: HTML, a reply, or a handler. */
type Content = string | Reply | ((request: IncomingMessage, response: ServerResponse) => void)

/** Serves paths on loopback. Paths without content get 404. */
async function serveSite(contents: Record<string, Content>) {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    const content = contents[request.url!]
    if (typeof content === 'function') return content(request, response)
    if (content === undefined) return response.writeHead(404).end()
    const { status = 200, headers, body = '' } = typeof content === 'string' ? { body: content } : content
    response.writeHead(status, { 'content-type': 'text/html', ...headers }).end(body)
  })
  const { host, close } = await listenOnLoopback(server)
  onTestFinished(close)
  return {
    origin: `http://${host}`,
    contents,
    requests,
    /** Paths that were requested, without `robots.txt`. */
    paths: () => requests.map(({ url }) => url).filter(url => url !== '/robots.txt'),
  }
}

interface CrawlOptions extends Partial<CrawlSelection> {
  versions?: Record<string, PageVersion>
  allowsPrivate?: boolean
  bytesMax?: number
  resolve?: (host: string) => Promise<readonly string[]>
}

async function read(url: string | string[], options: CrawlOptions = {}): Promise<CrawlItem[]> {
  const { versions = {}, allowsPrivate = true, bytesMax, resolve, ...selection } = options
  const network = openPageNetwork({ allowsPrivate, resolve })
  onTestFinished(() => network.close())
  const context = {
    network,
    clock: systemClock,
    signal: new AbortController().signal,
    delayMs: 0,
    ...(bytesMax !== undefined && { bytesMax }),
    storedVersion: (page: URL) => versions[page.href],
  }
  const items: CrawlItem[] = []
  const urls = [url].flat()
  for await (const item of crawl(context, {
    urls,
    depth: 0,
    usesSitemap: false,
    pagesMax: 100,
    ...selection,
  }))
    items.push(item)
  return items
}

const pagePaths = (items: CrawlItem[]) =>
  items.flatMap(item => (item.kind === 'page' ? [new URL(item.url).pathname + new URL(item.url).search] : []))
const problems = (items: CrawlItem[]) => items.flatMap(item => (item.kind === 'failed' ? [item.code] : []))
const skipped = (items: CrawlItem[]) =>
  items.flatMap(item => (item.kind === 'skipped' ? [`${new URL(item.url).pathname} ${item.category}`] : []))
const textOf = (items: CrawlItem[]) =>
  items.map(item => (item.kind === 'page' ? item.bytes.toString('utf8') : '')).join()
const links = (...paths: string[]) => paths.map(path => `<a href="${path}">x</a>`).join()

describe('one page', () => {
  test('is read under its URL without the fragment, with its title', async () => {
    const { origin, requests } = await serveSite({ '/a?x=1': '<title> The\n page </title>' })
    const items = await read(`${origin}/a?x=1#part`)
    expect(items).toMatchObject([
      { kind: 'page', url: `${origin}/a?x=1`, title: 'The page', mediaType: 'text/html' },
    ])
    expect(requests.at(-1)!.headers['user-agent']).toMatch(`workbase/${packageVersion()}`)
  })

  test.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
  ])('is unpacked (%s)', async (encoding, compress) => {
    const { origin } = await serveSite({
      '/a': { body: compress('<html>packed</html>'), headers: { 'content-encoding': encoding } },
    })
    expect(textOf(await read(`${origin}/a`))).toBe('<html>packed</html>')
  })

  test('that unpacks to too many bytes fails', async () => {
    const body = gzipSync(Buffer.alloc(60_000_000))
    const { origin } = await serveSite({ '/a': { body, headers: { 'content-encoding': 'gzip' } } })
    expect(problems(await read(`${origin}/a`))).toEqual(['payload_too_large'])
  })

  test.each([
    ['damaged data', { body: 'x', headers: { 'content-encoding': 'gzip' } }],
    ['an encoding that was not requested', { body: 'x', headers: { 'content-encoding': 'zstd' } }],
    ['an error', { status: 500 }],
    ['an endless redirect', { status: 302, headers: { location: '/a' } }],
    ['a redirect to an invalid URL', { status: 302, headers: { location: 'http://[' } }],
  ])('with %s fails', async (_, reply) => {
    const { origin } = await serveSite({ '/a': reply })
    expect(problems(await read(`${origin}/a`))).toEqual(['fetch_failed'])
  })

  test('is converted to UTF-8 if the server names another encoding', async () => {
    const body = Buffer.from('<html><title>Größe</title>Maß</html>', 'latin1')
    const { origin } = await serveSite({
      '/a': { body, headers: { 'content-type': 'text/html; charset=ISO-8859-1' } },
    })
    const items = await read(`${origin}/a`)
    expect(items).toMatchObject([{ title: 'Größe' }])
    expect(textOf(items)).toContain('Maß')
  })

  test('that does not start like HTML is marked as HTML', async () => {
    const { origin } = await serveSite({ '/a': '<p>alpha</p>' })
    expect(textOf(await read(`${origin}/a`))).toBe('<!doctype html>\n<p>alpha</p>')
  })

  test('of another type keeps its bytes', async () => {
    const body = Buffer.from([0x25, 0x50, 0x44, 0x46, 0xff])
    const { origin } = await serveSite({ '/a.pdf': { body, headers: { 'content-type': 'application/pdf' } } })
    expect(await read(`${origin}/a.pdf`)).toMatchObject([
      { mediaType: 'application/pdf', title: null, bytes: body },
    ])
  })

  test.each(['ftp://127.0.0.1/', 'http://user:secret@127.0.0.1/'])('%s is refused', async url => {
    const items = await read(url)
    expect(problems(items)).toEqual(['address_refused'])
    expect(JSON.stringify(items)).not.toContain('secret')
  })

  test('is requested again if the server asks to wait', async () => {
    let attempts = 0
    const { origin } = await serveSite({
      '/a': (_, response) => {
        if (attempts++ === 0) response.writeHead(429, { 'retry-after': '0' }).end()
        else response.end('<html>ready</html>')
      },
    })
    expect(pagePaths(await read(`${origin}/a`))).toEqual(['/a'])
  })
})

describe('private addresses', () => {
  test('are refused by default', async () => {
    const { origin, requests } = await serveSite({ '/a': 'private' })
    expect(problems(await read(`${origin}/a`, { allowsPrivate: false }))).toEqual(['address_refused'])
    expect(requests).toEqual([])
  })

  test.each([
    'http://10.0.0.1/',
    'http://[::1]:8080/',
    'http://169.254.169.254/latest/',
    'file:///etc/passwd',
  ])('are refused behind a redirect to %s', async location => {
    const guarded = openPageNetwork({ allowsPrivate: false })
    onTestFinished(() => guarded.close())
    const redirect = {
      status: 302,
      headers: { get: (name: string) => (name === 'location' ? location : null) },
    }
    const network = {
      ...guarded,
      send: async (url: URL, request: Parameters<typeof guarded.send>[1]) =>
        url.hostname === 'public.example' ? { ...redirect, body: null } : guarded.send(url, request),
    }
    const clock = systemClock
    const { signal } = new AbortController()
    const page = fetchPage({ network, clock, signal }, new URL('https://public.example/'))
    await expect(page).rejects.toMatchObject({ code: 'address_refused' })
  })

  test('are refused for a name that resolves to them', async () => {
    const { origin, requests } = await serveSite({ '/a': 'private' })
    const { port } = new URL(origin)
    const items = await read(`http://public.example:${port}/a`, {
      allowsPrivate: false,
      resolve: async () => ['127.0.0.1'],
    })
    expect(problems(items)).toEqual(['address_refused'])
    expect(requests).toEqual([])
  })
})

describe('links', () => {
  test('are followed to the depth, in the same folder of the same site, once', async () => {
    const { origin, paths } = await serveSite({
      '/docs/': links(
        'a',
        'a#part',
        '/docs/b',
        '/blog',
        'https://other.example/docs/',
        'mailto:x@example.com',
      ),
      '/docs/a': links('deep', './'),
      '/docs/b': 'b',
      '/docs/deep': 'deep',
    })
    expect(pagePaths(await read(`${origin}/docs/`, { depth: 1 }))).toEqual(['/docs/', '/docs/a', '/docs/b'])
    expect(paths()).toEqual(['/docs/', '/docs/a', '/docs/b'])
    expect(pagePaths(await read(`${origin}/docs/`, { depth: 2 }))).toContain('/docs/deep')
  })

  test('are relative to the base of the page', async () => {
    const { origin } = await serveSite({ '/': `<base href="/sub/">${links('a')}`, '/sub/a': 'a' })
    expect(pagePaths(await read(`${origin}/`, { depth: 1 }))).toEqual(['/', '/sub/a'])
  })

  test('are not followed beyond the maximum number of pages, and the others are counted', async () => {
    const { origin, paths } = await serveSite({ '/': links('a', 'b', 'c'), '/a': 'a' })
    const items = await read(`${origin}/`, { depth: 1, pagesMax: 2 })
    expect(pagePaths(items)).toEqual(['/', '/a'])
    expect(skipped(items)).toEqual(['/b further pages', '/c further pages'])
    expect(paths()).toEqual(['/', '/a'])
  })

  test('to files without text are not requested or not read', async () => {
    const { origin, paths } = await serveSite({
      '/': links('logo.png', 'photo'),
      '/photo': { headers: { 'content-type': 'image/jpeg' }, body: 'x' },
    })
    expect(skipped(await read(`${origin}/`, { depth: 1 }))).toEqual(['/logo.png .png', '/photo linked files'])
    expect(paths()).toEqual(['/', '/photo'])
  })

  test('to a file with noindex in a header are skipped', async () => {
    const headers = { 'content-type': 'application/pdf', 'x-robots-tag': 'noindex' }
    const { origin } = await serveSite({ '/': links('a.pdf'), '/a.pdf': { body: '%PDF-', headers } })
    expect(skipped(await read(`${origin}/`, { depth: 1 }))).toEqual(['/a.pdf pages with noindex'])
  })

  test('that are redirected to another folder are not read', async () => {
    const { origin, paths } = await serveSite({
      '/docs/': links('a'),
      '/docs/a': { status: 301, headers: { location: '/login' } },
      '/login': 'login',
    })
    const items = await read(`${origin}/docs/`, { depth: 1 })
    expect(skipped(items)).toEqual(['/docs/a links'])
    expect(paths()).toEqual(['/docs/', '/docs/a'])
  })

  test('to broken pages are reported', async () => {
    const { origin } = await serveSite({ '/': links('gone') })
    expect(problems(await read(`${origin}/`, { depth: 1 }))).toEqual(['fetch_failed'])
  })
})

describe('instructions of a site', () => {
  test('robots.txt excludes pages', async () => {
    const { origin, paths } = await serveSite({
      '/robots.txt': {
        body: 'User-agent: workbase\nDisallow: /secret\n\nUser-agent: *\nDisallow: /',
        headers: {},
      },
      '/': links('secret', 'open'),
      '/open': 'open',
    })
    const items = await read(`${origin}/`, { depth: 1 })
    expect(skipped(items)).toEqual(['/secret disallowed pages'])
    expect(pagePaths(items)).toEqual(['/', '/open'])
    expect(paths()).not.toContain('/secret')
    expect(problems(await read(`${origin}/secret`))).toEqual(['robots_disallowed'])
  })

  test('a server error for robots.txt excludes all pages', async () => {
    const { origin, paths } = await serveSite({ '/robots.txt': { status: 503 }, '/': 'x' })
    expect(problems(await read(`${origin}/`))).toEqual(['robots_disallowed'])
    expect(paths()).toEqual([])
  })

  test('a crawl delay is kept', async () => {
    const { origin } = await serveSite({
      '/robots.txt': 'User-agent: *\nCrawl-delay: 0.3',
      '/': links('a', 'b'),
      '/a': 'a',
      '/b': 'b',
    })
    const startedMs = systemClock.now()
    expect(pagePaths(await read(`${origin}/`, { depth: 1 }))).toHaveLength(3)
    expect(systemClock.now() - startedMs).toBeGreaterThanOrEqual(590)
  })

  test.each([
    ['<meta name="robots" content="noindex">', {}],
    ['<meta name="Workbase" content="noindex, follow">', {}],
    ['', { 'x-robots-tag': 'noindex' }],
    ['', { 'x-robots-tag': 'workbase: noindex' }],
  ])('a page with noindex is not stored, but its links are followed (%j, %j)', async (head, headers) => {
    const { origin } = await serveSite({ '/': { body: `${head}${links('a')}`, headers }, '/a': 'a' })
    const items = await read(`${origin}/`, { depth: 1 })
    expect(skipped(items)).toEqual(['/ pages with noindex'])
    expect(pagePaths(items)).toEqual(['/a'])
  })

  test.each([`<meta name="robots" content="nofollow">${links('a')}`, '<a href="a" rel="nofollow">x</a>'])(
    'links with nofollow are not followed (%#)',
    async page => {
      const { origin, paths } = await serveSite({ '/': page, '/a': 'a' })
      expect(pagePaths(await read(`${origin}/`, { depth: 1 }))).toEqual(['/'])
      expect(paths()).toEqual(['/'])
    },
  )

  test('a page is stored once, under its canonical URL in the same folder', async () => {
    const canonical = (path: string) => `<link rel="canonical" href="${path}">`
    const { origin } = await serveSite({
      '/docs/': links('a?print', 'a', 'b'),
      '/docs/a?print': canonical('/docs/a'),
      '/docs/a': canonical('/docs/a'),
      '/docs/b': canonical('https://other.example/b'),
    })
    expect(pagePaths(await read(`${origin}/docs/`, { depth: 1 }))).toEqual(['/docs/', '/docs/a', '/docs/b'])
  })
})

describe('stored versions', () => {
  const version = { etag: '"v1"', lastModified: 'Sat, 28 Nov 2026 10:00:00 GMT' }
  const conditional: Content = (request, response) => {
    const { 'if-none-match': etag, 'if-modified-since': since } = request.headers
    const isSame = etag === version.etag && since === version.lastModified
    response.writeHead(isSame ? 304 : 200, { etag: '"v1"', 'last-modified': version.lastModified })
    response.end(isSame ? undefined : '<html>x</html>')
  }

  test('are reported with a page', async () => {
    const { origin } = await serveSite({ '/a': conditional })
    expect(await read(`${origin}/a`)).toMatchObject([{ kind: 'page', version }])
  })

  test('are sent, and an unchanged page is not read', async () => {
    const { origin } = await serveSite({ '/a': conditional })
    const items = await read(`${origin}/a`, { versions: { [`${origin}/a`]: version } })
    expect(items).toEqual([{ kind: 'unchanged', url: `${origin}/a` }])
  })

  test('are sent after a redirect', async () => {
    const { origin } = await serveSite({
      '/': { status: 302, headers: { location: '/a' } },
      '/a': conditional,
    })
    const items = await read(`${origin}/`, { versions: { [`${origin}/a`]: version } })
    expect(items).toEqual([{ kind: 'unchanged', url: `${origin}/a` }])
  })

  test('are not sent for a page whose links are followed', async () => {
    const { origin } = await serveSite({ '/a': conditional })
    const items = await read(`${origin}/a`, { depth: 1, versions: { [`${origin}/a`]: version } })
    expect(pagePaths(items)).toEqual(['/a'])
  })

  test('are not reported for a page with another canonical URL', async () => {
    const body = '<link rel="canonical" href="/a">'
    const { origin } = await serveSite({ '/a?print': { headers: { etag: '"v1"' }, body } })
    expect(await read(`${origin}/a?print`)).toMatchObject([{ url: `${origin}/a`, version: { etag: null } }])
  })

  test('that a server could not have sent are left out', async () => {
    const { origin } = await serveSite({ '/a': { headers: { etag: 'unquoted' }, body: 'x' } })
    expect(await read(`${origin}/a`)).toMatchObject([{ version: { etag: null, lastModified: null } }])
  })
})

describe('a sitemap', () => {
  const sitemap = (...urls: string[]) =>
    `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${urls.map(url => `<url><loc>${url}</loc></url>`).join('')}</urlset>`
  const xml = (body: string | Buffer): Reply => ({ body, headers: { 'content-type': 'application/xml' } })

  test('that is named lists the pages of its site', async () => {
    const site = await serveSite({ '/a': 'a', '/b': 'b' })
    site.contents['/map.xml'] = xml(
      sitemap(`${site.origin}/a`, ` ${site.origin}/b#x `, 'https://other.example/c'),
    )
    expect(pagePaths(await read(`${site.origin}/map.xml`))).toEqual(['/a', '/b'])
  })

  test('of a site is found through robots.txt, with an index and compression', async () => {
    const site = await serveSite({ '/docs/a': 'a', '/blog/b': 'b' })
    site.contents['/robots.txt'] = `Sitemap: ${site.origin}/index.xml`
    site.contents['/index.xml'] = xml(
      `<sitemapindex><sitemap><loc>${site.origin}/map.xml.gz</loc></sitemap></sitemapindex>`,
    )
    site.contents['/map.xml.gz'] = xml(gzipSync(sitemap(`${site.origin}/docs/a`, `${site.origin}/blog/b`)))
    expect(pagePaths(await read(`${site.origin}/docs/`, { usesSitemap: true }))).toEqual(['/docs/a'])
  })

  test('without pages in the folder is reported', async () => {
    const { origin } = await serveSite({ '/robots.txt': 'Sitemap: http://[' })
    expect(problems(await read(`${origin}/`, { usesSitemap: true }))).toEqual(['extraction_failed'])
  })

  test('counts toward the bytes that one command reads', async () => {
    const site = await serveSite({ '/a': 'A' })
    site.contents['/sitemap.xml'] = xml(sitemap(`${site.origin}/a`))
    const items = await read(`${site.origin}/`, { usesSitemap: true, bytesMax: 100 })
    expect(problems(items)).toEqual(['payload_too_large'])
    expect(site.paths()).toEqual(['/sitemap.xml'])
  })

  test('of a site without an entry in robots.txt is /sitemap.xml', async () => {
    const site = await serveSite({ '/a': links('b'), '/b': 'b' })
    site.contents['/sitemap.xml'] = xml(sitemap(`${site.origin}/a`))
    expect(pagePaths(await read(`${site.origin}/`, { usesSitemap: true }))).toEqual(['/a'])
    expect(pagePaths(await read(`${site.origin}/`, { usesSitemap: true, depth: 1 }))).toEqual(['/a', '/b'])
  })

  test.each([
    ['damaged', '<urlset><url>'],
    ['with entities', '<!DOCTYPE x [<!ENTITY a "b">]><urlset><url><loc>&a;</loc></url></urlset>'],
  ])('that is %s fails', async (_, body) => {
    const { origin } = await serveSite({ '/sitemap.xml': xml(body) })
    expect(problems(await read(`${origin}/`, { usesSitemap: true }))).toEqual(['extraction_failed'])
  })
})
