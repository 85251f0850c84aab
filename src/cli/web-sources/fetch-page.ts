import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import type { Clock } from '../../base/clock.ts'
import { TimedOut, withTimeout } from '../../base/deadline.ts'
import { packageVersion } from '../../base/package.ts'
import { BodyTooLong, discardBody, limitBytes, readBody } from '../../base/read-body.ts'
import type { OutboundResponse, PageNetwork } from '../local.ts'
import { formatByteSize } from '../terminal/byte-size.ts'
import { SourceProblem } from './source-problem.ts'

/** Maximum size of a page or file, also after it is unpacked. */
export const pageBytesMax = 40_000_000
/** Maximum time for a page with all its redirects. */
const pageTimeoutMs = 60_000
const redirectsMax = 10
/** Maximum length of a URL. Longer ones usually come from pages that generate links endlessly. */
export const urlCharsMax = 2_000

/** Name under which pages are requested, and which rules in `robots.txt` can name. */
export const robotName = 'workbase'
export const userAgent = () => `${robotName}/${packageVersion()} (wb kb ingest)`

/** Values of an earlier response, with which a server recognizes that the page has not changed. */
export interface PageVersion {
  readonly etag: string | null
  readonly lastModified: string | null
}

/** Returns the version that headers or stored values name. Values that a server could not have sent are left out. */
export function toPageVersion(etag: unknown, lastModified: unknown): PageVersion {
  return {
    etag: typeof etag === 'string' && /^(?:W\/)?"[\x21\x23-\x7e]{0,500}"$/.test(etag) ? etag : null,
    lastModified:
      typeof lastModified === 'string' && /^[\x20-\x7e]{1,50}$/.test(lastModified) ? lastModified : null,
  }
}

export interface FetchedPage {
  /** URL after all redirects, without a fragment. */
  readonly url: URL
  readonly bytes: Buffer
  /** Lowercase media type without parameters; empty if the server names none. */
  readonly mediaType: string
  /** Encoding that the server names; undefined if it names none. */
  readonly charset: string | undefined
  readonly version: PageVersion
  /** Instructions for robots in the header `X-Robots-Tag`; null if there are none. */
  readonly robotsHeader: string | null
}

/** Settings of {@link fetchPage}. */
export interface FetchContext {
  readonly network: PageNetwork
  readonly clock: Clock
  readonly signal: AbortSignal
}

interface PageRequest {
  /** Returns the version of a page that is stored, for a conditional request. */
  readonly storedVersion?: (url: URL) => PageVersion | undefined
  /** Returns false for media types whose content is not needed. The problem then has the code `unsupported_file_type`. */
  readonly acceptsType?: (mediaType: string) => boolean
  readonly bytesMax?: number
  readonly timeoutMs?: number
  /** Path of a file to write; the page then has no bytes. */
  readonly saveTo?: string
  /**
   * Called before each redirect is followed.
   *
   * @throws SourceProblem  the page must not be read
   */
  readonly checkRedirect?: (url: URL) => Promise<void>
}

/** Response of a server that the page is the same as the stored version. */
export interface UnchangedPage {
  readonly url: URL
  readonly isUnchanged: true
}

/**
 * Requests a page and follows redirects. Each address is checked before a connection to it is opened. Returns an unchanged
 * page only if the request contains `storedVersion`.
 *
 * @throws SourceProblem  the page cannot be read
 */
export async function fetchPage(
  context: FetchContext,
  url: URL,
  request: PageRequest = {},
): Promise<FetchedPage | UnchangedPage> {
  const { clock, signal } = context
  const { bytesMax = pageBytesMax, timeoutMs = pageTimeoutMs } = request
  try {
    return await withTimeout(
      clock,
      timeoutMs,
      limited => followRedirects({ ...context, signal: limited }, url, { ...request, bytesMax }),
      signal,
    )
  } catch (error) {
    signal.throwIfAborted()
    throw toProblem(error, bytesMax, timeoutMs)
  }
}

async function followRedirects(
  context: FetchContext,
  start: URL,
  request: PageRequest & { bytesMax: number },
): Promise<FetchedPage | UnchangedPage> {
  let url = start
  for (let redirects = 0; ; redirects++) {
    requireWebUrl(url)
    const stored = request.storedVersion?.(url)
    const response = await sendRequest(context, url, stored)
    const location = response.headers.get('location')
    if (response.status >= 300 && response.status < 400 && location !== null) {
      await discardBody(response.body)
      if (redirects === redirectsMax)
        throw new SourceProblem('fetch_failed', `it redirects more than ${redirectsMax} times`)
      if (!URL.canParse(location, url.href))
        throw new SourceProblem('fetch_failed', 'it redirects to an invalid URL')
      url = withoutFragment(new URL(location, url))
      requireWebUrl(url)
      await request.checkRedirect?.(url)
    } else if (response.status === 304 && stored) {
      await discardBody(response.body)
      return { url, isUnchanged: true }
    } else return await readResponse(response, url, request)
  }
}

function sendRequest({ network, signal }: FetchContext, url: URL, stored: PageVersion | undefined) {
  return network.send(url, {
    method: 'GET',
    headers: {
      accept: 'text/html, text/markdown, text/*;q=0.9, */*;q=0.8',
      'accept-encoding': 'gzip, deflate, br',
      'user-agent': userAgent(),
      ...(stored?.etag && { 'if-none-match': stored.etag }),
      ...(stored?.lastModified && { 'if-modified-since': stored.lastModified }),
    },
    body: null,
    signal,
  })
}

async function readResponse(
  { status, headers, body }: OutboundResponse,
  url: URL,
  { acceptsType, bytesMax, saveTo }: PageRequest & { bytesMax: number },
): Promise<FetchedPage> {
  const { mediaType, charset } = parseContentType(headers.get('content-type') ?? '')
  if (status !== 200 || acceptsType?.(mediaType) === false) {
    await discardBody(body)
    if (status !== 200) throw new HttpProblem(status, headers)
    throw new SourceProblem('unsupported_file_type', `it has the type ${mediaType}`)
  }
  const content = unpacked(body, headers.get('content-encoding'), bytesMax)
  if (saveTo !== undefined)
    await pipeline(limitBytes(content, bytesMax), createWriteStream(saveTo, { mode: 0o600 }))
  const bytes = saveTo === undefined ? await readBody(content, bytesMax) : Buffer.alloc(0)
  const version = toPageVersion(headers.get('etag'), headers.get('last-modified'))
  return { url, bytes, mediaType, charset, version, robotsHeader: headers.get('x-robots-tag') }
}

/** A response with a status other than 200. */
export class HttpProblem extends SourceProblem {
  /** Time in milliseconds to wait before a retry, from `Retry-After`; undefined if the server sends none. */
  readonly retryAfterMs: number | undefined

  constructor(
    readonly status: number,
    headers: OutboundResponse['headers'],
  ) {
    super('fetch_failed', `the server responded with status ${status}`)
    const retryAfter = headers.get('retry-after')
    this.retryAfterMs = /^\d{1,6}$/.test(retryAfter ?? '') ? Number(retryAfter) * 1_000 : undefined
  }
}

/**
 * Returns the unpacked body. Also limits the packed bytes, because a server can send encodings that never produce
 * output.
 */
function unpacked(
  body: OutboundResponse['body'],
  encoding: string | null,
  bytesMax: number,
): AsyncIterable<Uint8Array> | null {
  const name = (encoding ?? 'identity').trim().toLowerCase()
  if (name === 'identity' || name === '' || body === null) return body
  const unpacker = unpackers[name]?.()
  if (!unpacker) throw new SourceProblem('fetch_failed', 'the server used an encoding that was not requested')
  const source = Readable.from(limitPackedBytes(body, bytesMax))
  source.on('error', error => unpacker.destroy(error))
  unpacker.on('close', () => source.destroy())
  return source.pipe(unpacker)
}

const unpackers: Readonly<Record<string, () => NodeJS.ReadWriteStream & Readable>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
}

async function* limitPackedBytes(body: AsyncIterable<Uint8Array>, bytesMax: number) {
  let bytes = 0
  for await (const part of body) {
    bytes += part.length
    if (bytes > bytesMax) throw new BodyTooLong(bytesMax)
    yield part
  }
}

/** @throws SourceProblem  the URL is not one of a web page, or contains credentials */
export function requireWebUrl(url: URL): void {
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new SourceProblem('address_refused', `${url.protocol} URLs are not read; only http: and https:`)
  if (url.username !== '' || url.password !== '')
    throw new SourceProblem(
      'address_refused',
      'the URL contains a user name or a password, which would be stored as the name of the document',
    )
  if (url.href.length > urlCharsMax)
    throw new SourceProblem('address_refused', `the URL is longer than ${urlCharsMax} characters`)
}

/** Returns a copy of a URL without its fragment, which names a part of a page. */
export function withoutFragment(url: URL): URL {
  const copy = new URL(url)
  copy.hash = ''
  return copy
}

function parseContentType(text: string): { mediaType: string; charset: string | undefined } {
  const mediaType = text.split(';', 1)[0]!.trim().toLowerCase()
  return { mediaType, charset: /;\s*charset\s*=\s*"?([\w.:-]{1,40})/i.exec(text)?.[1] }
}

const systemMessages: Readonly<Record<string, string>> = {
  ENOTFOUND: 'the host was not found',
  EAI_AGAIN: 'the host could not be looked up',
  ECONNREFUSED: 'the server refused the connection',
  ECONNRESET: 'the server closed the connection',
  UND_ERR_SOCKET: 'the server closed the connection',
  UND_ERR_CONNECT_TIMEOUT: 'the server did not respond',
  CERT_HAS_EXPIRED: 'the certificate of the server has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate of the server is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate of the server is self-signed',
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate of the server is for another host',
}

function toProblem(error: unknown, bytesMax: number, timeoutMs: number): unknown {
  if (!(error instanceof Error) || error instanceof SourceProblem) return error
  if (error instanceof BodyTooLong)
    return new SourceProblem('payload_too_large', `it is larger than ${formatByteSize(bytesMax)}`)
  if (error instanceof TimedOut)
    return new SourceProblem('fetch_failed', `it was not complete after ${timeoutMs / 1_000} seconds`)
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause.name === 'PageAddressRefused') return new SourceProblem('address_refused', cause.message)
    const code = 'code' in cause ? String(cause.code) : ''
    if (/^Z_|^ERR__ERROR|^ERR_BROTLI|_ERROR_FORMAT/.test(code))
      return new SourceProblem('fetch_failed', 'its compressed data is damaged')
    if (code in systemMessages) return new SourceProblem('fetch_failed', systemMessages[code]!)
  }
  return new SourceProblem('fetch_failed', `it could not be read: ${error.message}`)
}
