import type { IncomingMessage } from 'node:http'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'

/** Hint for a request that is not valid HTTP. */
export const wellFormedHint = 'Send a well-formed HTTP/1.1 request.'

/** Request line and headers of a Node message. */
export type RequestHead = Pick<IncomingMessage, 'url' | 'httpVersion' | 'headers' | 'rawHeaders'>

/**
 * Returns a function that checks the request line and headers. It must run before any framework code, because URL
 * parsers throw on some hosts that HTTP parsers accept. The function returns the error to send, or undefined.
 *
 * @see RFC 9112 section 3.2
 */
export function createHeadCheck(): (head: RequestHead) => WbError | undefined {
  // Consecutive requests usually have the same host, and parsing it costs more than the rest of the check.
  let lastValidHost: string | undefined

  function isValidHost(host: string): boolean {
    if (host === lastValidHost) return true
    if (!isHostHeader(host)) return false
    lastValidHost = host
    return true
  }

  return ({ url = '', httpVersion, headers, rawHeaders }) => {
    if (rawHeaders.length > 2 * limits.headerCount)
      return new WbError('headers_too_large', `there are more than ${limits.headerCount} headers`)
    if (!isRequestTarget(url)) return invalidHead('the request target is not valid')
    if (headers.host === undefined && httpVersion === '1.1') return invalidHead('the Host header is missing')
    const repeated = repeatedHeader(rawHeaders)
    if (repeated) return invalidHead(`the header ${repeated} was sent more than once`)
    // An empty Host header is valid if the client does not know a name for the server.
    if (headers.host && !isValidHost(headers.host)) return invalidHead('the Host header is not valid')
    return undefined
  }
}

function invalidHead(message: string): WbError {
  return new WbError('validation_error', message, { hint: wellFormedHint })
}

/** Returns true for a valid Host header: a host name or IP address with an optional port. */
export function isHostHeader(text: string): boolean {
  return hostPattern.test(text) && URL.canParse(`http://${text}`)
}

const hostPattern = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{0,5})?$/i

/** Returns true for a valid request target: a path, `*`, or an absolute http(s) URL, which proxies send. */
function isRequestTarget(target: string): boolean {
  if (unsafeCharacter.test(target) || dotSegment.test(target)) return false
  return target.startsWith('/') || target === '*' || isAbsoluteForm(target)
}

function isAbsoluteForm(target: string): boolean {
  const [, authority] = /^https?:\/\/([^/?]+)/i.exec(target) ?? []
  return authority !== undefined && isHostHeader(authority) && URL.canParse(target)
}

/** Characters that a URL parser drops or rewrites: controls, spaces, `#`, and a backslash in the path. */
const unsafeCharacter = /[\0-\x20\x7f#]|^[^?]*\\/

/** The path segments `.` and `..`, encoded or not, which a URL parser would resolve to another path. */
const dotSegment = /^[^?]*\/(?:\.|%2e){1,2}(?:[/?]|$)/i

const singleHeaders: readonly string[] = ['host', 'authorization', 'content-length']
const singleHeaderLengths = new Set(singleHeaders.map(name => name.length))

/**
 * Returns the name of a header that must be unique but is repeated. Compares lengths before names, to save time on
 * every request.
 */
function repeatedHeader(rawHeaders: readonly string[]): string | undefined {
  const seen: string[] = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (!singleHeaderLengths.has(rawHeaders[index]!.length)) continue
    const name = rawHeaders[index]!.toLowerCase()
    if (!singleHeaders.includes(name)) continue
    if (seen.includes(name)) return name
    seen.push(name)
  }
  return undefined
}
