import type { AuthProvider, Client } from '@modelcontextprotocol/client'
import { isInTheClear } from '../../base/loopback.ts'
import type { Environment } from '../../config/environment.ts'
import type { McpFailureCode } from '../../contract/mcp-servers.ts'
import { type Failed, type IsReleased, releasedSecret } from '../endpoint.ts'
import { refusalIn } from '../guard.ts'
import {
  answerBytesMax,
  answerTo,
  type McpAnswer,
  type McpCall,
  McpFailure,
  type McpSdk,
  type McpTool,
  mcpClient,
  namedCause,
  notInTime,
  requestsMax,
  toolsOf,
} from './client.ts'

/** What a record says of a tool server. */
export interface McpEndpoint {
  readonly workspaceId: string
  readonly url: string
  readonly credentialRef: string | null
  /** Access tokens of the caller, which are sent instead of the credential. */
  readonly accessTokens?: AccessTokens
}

/** Access tokens of one subject for one server. */
export interface AccessTokens {
  /** @throws McpFailure  the subject is not signed in */
  current(): Promise<string>
  /** Replaces a token that the server refused. @throws McpFailure  the subject has to sign in again */
  renew(refused: string): Promise<string>
}

export interface McpParts {
  readonly environment: Environment
  /** Asked at each connection, so that a release is in force at once. */
  readonly isReleased: IsReleased
  /** Guarded; follows no redirect. */
  readonly fetch: typeof fetch
}

/**
 * The tools that a server offers, by a session of its own.
 *
 * @param signal  ends it; the session itself waits for ever
 * @throws McpFailure
 */
export async function listMcpTools(
  server: McpEndpoint,
  parts: McpParts,
  signal: AbortSignal,
): Promise<McpTool[]> {
  return inSession(server, parts, signal, toolsOf)
}

/**
 * Call a tool of a server, by a session of its own.
 *
 * @param signal  ends it; the session itself waits for ever
 * @returns the texts of the result, one below the other, or its object where it has none; a part that is no text is named
 *   where it stood
 * @throws McpFailure
 * @see docs/tool-servers.md#what-a-call-may-do
 */
export async function callMcpTool(
  server: McpEndpoint,
  call: McpCall,
  parts: McpParts,
  signal: AbortSignal,
): Promise<McpAnswer> {
  return inSession(server, parts, signal, (client, until, sdk) => answerTo(call, client, until, sdk))
}

/**
 * Connect, and let go of the server when done. The credential is resolved for this session, for the host that is
 * dialled.
 *
 * @throws McpFailure
 * @see docs/security.md#rule-1, docs/security.md#rule-14
 */
async function inSession<T>(
  server: McpEndpoint,
  parts: McpParts,
  signal: AbortSignal,
  use: (client: Client, until: AbortSignal, sdk: McpSdk) => Promise<T>,
): Promise<T> {
  const url = new URL(server.url)
  const { accessTokens } = server
  const bearer = accessTokens && (await Bearer.open(accessTokens, url))
  const credential = bearer ? undefined : await credentialOf(server, parts, url)
  const sdk = await import('@modelcontextprotocol/client')
  const wire = new Wire(url.origin, parts.fetch, signal, accessTokens !== undefined)
  const transport = new sdk.StreamableHTTPClientTransport(url, {
    fetch: wire.fetch,
    ...(bearer && { authProvider: bearer }),
    requestInit: {
      redirect: 'manual',
      headers: credential === undefined ? {} : { authorization: `Bearer ${credential}` },
    },
    reconnectionOptions: {
      maxRetries: 0,
      initialReconnectionDelay: 0,
      maxReconnectionDelay: 0,
      reconnectionDelayGrowFactor: 1,
    },
  })
  const client = mcpClient(sdk, 'auto')
  try {
    await client.connect(transport, { signal: wire.signal })
    return await use(client, wire.signal, sdk)
  } catch (error) {
    throw bearer?.failure ?? wire.failureOf(error)
  } finally {
    await transport.terminateSession().catch(() => {})
    await client.close()
  }
}

/** An access token for the SDK, which sends a request once more after a 401. */
class Bearer implements AuthProvider {
  /** Why there is no new token. */
  failure: unknown

  private constructor(
    private readonly tokens: AccessTokens,
    private sent: string,
  ) {}

  /** @throws McpFailure  not signed in, or the token would cross the network unencrypted */
  static async open(tokens: AccessTokens, url: URL): Promise<Bearer> {
    if (isInTheClear(url))
      throw new McpFailure(
        'credential_unavailable',
        `The access token would be sent to ${url.host} without encryption.`,
      )
    return new Bearer(tokens, await tokens.current())
  }

  async token(): Promise<string> {
    return this.sent
  }

  async onUnauthorized(): Promise<void> {
    try {
      this.sent = await this.tokens.renew(this.sent)
    } catch (error) {
      this.failure = error
      throw error
    }
  }
}

/** @throws McpFailure  missing, not released for the host, about to leave in the clear, or not resolved */
async function credentialOf(
  { credentialRef, workspaceId }: McpEndpoint,
  { environment, isReleased }: McpParts,
  url: URL,
): Promise<string | undefined> {
  if (credentialRef === null) return undefined
  const failed: Failed = (_trouble, reason, { hint = '' } = {}) =>
    new McpFailure('credential_unavailable', [`The server ${reason}.`, hint].join(' ').trim())
  return releasedSecret({ environment, isReleased, failed }, credentialRef, workspaceId, url)
}

/** What passes between a session and its server, in bounds, and what is known of it when the session fails. */
class Wire {
  #status: number | undefined
  #failure: unknown
  #bytes = 0
  #requests = 0
  readonly #flooded = new AbortController()
  /** Ends the session: nobody waits for it any more, or its server asks too much. */
  readonly signal: AbortSignal

  constructor(
    private readonly origin: string,
    private readonly send: typeof fetch,
    private readonly until: AbortSignal,
    private readonly hasTokens: boolean,
  ) {
    this.signal = AbortSignal.any([until, this.#flooded.signal])
  }

  /** For the SDK. Nobody listens to what a server says unasked, so that no stream is opened for it. */
  readonly fetch = async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(input)
    if (url.origin !== this.origin) throw new Error(`${url.origin} is not ${this.origin}`)
    if (init.method === 'GET') return new Response(null, { status: 405 })
    // The SDK answers whatever a server asks, and a server can ask a hundred thousand times in one answer.
    if (++this.#requests > requestsMax) this.#flooded.abort()
    this.signal.throwIfAborted()
    const signal = init.signal ? AbortSignal.any([init.signal, this.signal]) : this.signal
    try {
      const answer = await this.send(url, { ...init, signal })
      if (init.method === 'POST') this.#status = answer.status
      return await singly(answer, answer.body?.pipeThrough(this.#counted()) ?? null)
    } catch (error) {
      if (!(error instanceof BatchRefused)) this.#failure ??= error
      throw error
    }
  }

  failureOf(error: unknown): McpFailure {
    const cause = this.hasTokens && this.#status !== undefined ? namedCause(error) : error
    const failure = (code: McpFailureCode, message: string) => new McpFailure(code, message, cause)
    const refusal = refusalIn(this.#failure)
    if (refusal)
      return failure(
        'endpoint_refused',
        `The address may not be dialled: ${refusal.message}. ${refusal.hint}`,
      )
    if (this.#bytes > answerBytesMax)
      return failure('too_large', `The server sent more than ${answerBytesMax} bytes.`)
    if (this.#flooded.signal.aborted)
      return failure('protocol_error', `The server asks for more than ${requestsMax} answers.`)
    if (this.until.aborted) return notInTime(cause)
    return this.#status === undefined || this.#failure !== undefined
      ? failure('unreachable', 'The server cannot be reached. Check the url, and that the server runs.')
      : failure(...described(this.#status, this.hasTokens))
  }

  #counted(): TransformStream<Uint8Array, Uint8Array> {
    return new TransformStream({
      transform: (part, controller) => {
        this.#bytes += part.length
        if (this.#bytes > answerBytesMax) controller.error(new Error('too large'))
        else controller.enqueue(part)
      },
    })
  }
}

/** Nothing is asked in batches, and one of requests would hold the process up until all are answered. */
class BatchRefused extends Error {
  override readonly name = 'BatchRefused'
}

/** The answer, unless it is JSON that holds several messages at once. @throws BatchRefused */
async function singly(
  { status, headers }: Response,
  body: ReadableStream<Uint8Array> | null,
): Promise<Response> {
  if (body === null || !headers.get('content-type')?.toLowerCase().includes('application/json'))
    return new Response(body, { status, headers })
  const text = await new Response(body).text()
  if (/^\s*\[/.test(text)) throw new BatchRefused('several messages at once')
  return new Response(text, { status, headers })
}

/** What the status of the last answer says of a session that failed. */
function described(status: number, hasTokens: boolean): [McpFailureCode, string] {
  if (status === 401 || status === 403)
    return [
      'unauthorized',
      `The server answered with status ${status}. ${hasTokens ? 'Sign in to it again, or ask for access to it.' : 'Check the key that credentialRef names.'}`,
    ]
  if (status >= 300 && status < 400)
    return [
      'redirected',
      'The server answered with a redirect, which is not followed. Use the address that it leads to.',
    ]
  if (status >= 400) return ['http_error', `The server answered with status ${status}. Check the url.`]
  return [
    'protocol_error',
    'The server does not answer as an MCP server by Streamable HTTP does. Check the url.',
  ]
}
