import type { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import { TimedOut, withTimeout } from '../../base/deadline.ts'
import { BodyTooLong, readBody } from '../../base/read-body.ts'
import type { Config } from '../../config/schema.ts'
import { endpointRefusalIn } from '../../models/endpoint-guard.ts'
import { createExecutableTool } from './executable-tool.ts'
import { fetchTool } from './runtime-tools.ts'
import type { Tool, ToolContext } from './tool.ts'
import { previewText, ToolError } from './tool-result.ts'

type FetchSettings = Config['chat']['tools']['fetch']
type FetchArguments = z.output<typeof fetchTool.input>

export interface FetchToolDependencies {
  readonly clock: Clock
  /** Connects to public addresses, and to private ones that the operator allowed. Does not follow redirects. */
  readonly fetch: typeof fetch
  readonly settings: FetchSettings
}

const headersMax = 32
const addressCharsMax = 2_000
const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const headerValue = /^[\t\x20-\x7e]*$/
/**
 * Headers that a model must not set: credentials, the request's origin, and message framing. If requests need a key, an
 * operator can configure a tool server that has the key.
 */
const reservedHeaders =
  /^(?:host|cookie2?|authorization|x-api-key|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|content-length|content-encoding|accept-encoding|forwarded|via|origin|referer|(?:proxy|sec|x-forwarded|x-real)-.*)$/i
const readableTypes = /^(?:text\/[\w.+-]+|application\/json|application\/xml)$/

/**
 * Creates the tool that reads a web page or calls an HTTP API. It sends no credentials of the runtime.
 *
 * @see docs/agents.md#tools, docs/security.md#rule-14
 */
export function createFetchTool(deps: FetchToolDependencies): Tool {
  return createExecutableTool(fetchTool, (args, context) => fetchPage(deps, args, context), {
    readsUntrusted: true,
  })
}

async function fetchPage(
  deps: FetchToolDependencies,
  args: FetchArguments,
  context: ToolContext,
): Promise<string> {
  const { clock, settings } = deps
  const url = new URL(args.url)
  if (url.username || url.password) throw new ToolError('url: must not contain a user name or a password')
  if (args.method === 'GET' && args.body !== undefined) throw new ToolError('body: allowed only with POST')
  checkHeaders(Object.entries(args.headers ?? {}))
  try {
    return await withTimeout(
      clock,
      settings.timeoutMs,
      signal => sendRequest(deps, url, args, signal),
      context.signal,
    )
  } catch (error) {
    throw toModelError(error, url, settings, context)
  }
}

async function sendRequest(
  { fetch, settings }: FetchToolDependencies,
  url: URL,
  { method, headers, body }: FetchArguments,
  signal: AbortSignal,
): Promise<string> {
  const response = await fetch(url, {
    method,
    headers: { accept: 'text/*, application/json, application/xml', 'user-agent': 'workbase', ...headers },
    ...(body === undefined ? {} : { body }),
    redirect: 'manual',
    signal,
  })
  const type = response.headers.get('content-type') ?? ''
  const error = redirectError(response, url) ?? unreadableTypeError(response, type)
  if (error) {
    await response.body?.cancel()
    throw error
  }
  const text = decodeText(await readBody(response.body, settings.maxResponseBytes), type)
  if (!response.ok) throw new ToolError(`status ${response.status}\n\n${text}`)
  return text === '' ? `Status ${response.status}. The response is empty.` : text
}

function redirectError({ status, headers }: Response, url: URL): ToolError | undefined {
  const location = headers.get('location')
  if (status < 300 || status >= 400 || location === null) return undefined
  const target = URL.canParse(location, url.href) ? new URL(location, url).href : location
  return new ToolError(
    `${url.host} redirects to ${previewText(target, addressCharsMax)}; to follow the redirect, call that address`,
  )
}

function unreadableTypeError({ status, ok, body }: Response, type: string): ToolError | undefined {
  const mediaType = type.split(';', 1)[0]!.trim().toLowerCase()
  if (readableTypes.test(mediaType) || (ok && body === null)) return undefined
  if (!ok) return new ToolError(`status ${status}`)
  return new ToolError(
    `the response has ${mediaType === '' ? 'no content type' : `the type ${previewText(mediaType, 100)}`}; only text, JSON and XML can be read`,
  )
}

function decodeText(bytes: Uint8Array, type: string): string {
  const charset = /;\s*charset="?([\w-]+)/i.exec(type)?.[1] ?? 'utf-8'
  try {
    return new TextDecoder(charset).decode(bytes)
  } catch {
    return new TextDecoder().decode(bytes)
  }
}

function checkHeaders(headers: readonly [string, string][]): void {
  if (headers.length > headersMax) throw new ToolError(`headers: at most ${headersMax} are allowed`)
  for (const [name, value] of headers) {
    if (!headerName.test(name) || !headerValue.test(value))
      throw new ToolError(`headers: ${previewText(name, 100)} is not a valid header`)
    if (reservedHeaders.test(name)) throw new ToolError(`headers: ${name} may not be set`)
  }
}

/** Converts a failure to an error message for the model. The message does not reveal internal addresses. */
function toModelError(
  error: unknown,
  { host }: URL,
  settings: FetchSettings,
  { signal }: ToolContext,
): unknown {
  if (error instanceof ToolError) return error
  if (error instanceof TimedOut)
    return new ToolError(`${host} did not respond within ${settings.timeoutMs} ms`)
  if (error instanceof BodyTooLong)
    return new ToolError(`the response of ${host} has more than ${settings.maxResponseBytes} bytes`)
  const refusal = endpointRefusalIn(error)
  if (refusal) return new ToolError(refusal.message)
  return signal.aborted ? error : new ToolError(`${host} cannot be reached`)
}
