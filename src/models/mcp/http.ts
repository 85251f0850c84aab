import type { AuthProvider, Client } from '@modelcontextprotocol/client'
import { isUnencryptedRemote } from '../../base/loopback.ts'
import type { ConfigEnvironment } from '../../config/config-environment.ts'
import type { McpFailureCode } from '../../contract/mcp-servers.ts'
import { type CreateFailure, type IsReleased, resolveReleasedSecret } from '../endpoint.ts'
import { endpointRefusalIn } from '../endpoint-guard.ts'
import {
  callToolOf,
  createMcpClient,
  listToolsOf,
  type McpAnswer,
  type McpCall,
  McpFailure,
  type McpSdk,
  type McpTool,
  mcpTimeout,
  namedCause,
  sessionBytesMax,
  sessionRequestsMax,
} from './client.ts'

/** Address and credential of a tool server in its record. */
export interface McpEndpoint {
  readonly workspaceId: string
  readonly url: string
  readonly credentialRef: string | null
  /** Access tokens of the caller, sent instead of the credential. */
  readonly accessTokens?: McpAccessTokens
}

/** Access tokens of one subject for one server. */
export interface McpAccessTokens {
  /** @throws McpFailure  the subject is not signed in */
  current(): Promise<string>
  /**
   * Replaces a token that the server refused.
   *
   * @throws McpFailure  the subject has to sign in again
   */
  renew(refused: string): Promise<string>
}

export interface McpHttpParts {
  readonly environment: ConfigEnvironment
  /** Called for each connection, so that a change applies immediately. */
  readonly isReleased: IsReleased
  /** Checked by the endpoint guard. Follows no redirect. */
  readonly fetch: typeof fetch
}

/**
 * Returns the tools of a server, in a new session.
 *
 * @param signal  ends the session, which has no timeout
 * @throws McpFailure
 */
export async function listMcpTools(
  server: McpEndpoint,
  parts: McpHttpParts,
  signal: AbortSignal,
): Promise<McpTool[]> {
  return inSession(server, parts, signal, listToolsOf)
}

/**
 * Calls a tool of a server, in a new session.
 *
 * @param signal  ends the session, which has no timeout
 * @returns the texts of the result, one per line, or its structured content as JSON if it has no text; a note
 * replaces each other part
 * @throws McpFailure
 * @see docs/tool-servers.md#what-a-call-may-do
 */
export async function callMcpTool(
  server: McpEndpoint,
  call: McpCall,
  parts: McpHttpParts,
  signal: AbortSignal,
): Promise<McpAnswer> {
  return inSession(server, parts, signal, (client, until, sdk) => callToolOf(call, client, until, sdk))
}

/**
 * Connects, runs a function, and ends the session. The credential is resolved for this session and host.
 *
 * @throws McpFailure
 * @see docs/security.md#rule-1, docs/security.md#rule-14
 */
async function inSession<T>(
  server: McpEndpoint,
  parts: McpHttpParts,
  signal: AbortSignal,
  use: (client: Client, until: AbortSignal, sdk: McpSdk) => Promise<T>,
): Promise<T> {
  const url = new URL(server.url)
  const { accessTokens } = server
  const bearer = accessTokens && (await McpBearer.open(accessTokens, url))
  const credential = bearer ? undefined : await credentialOf(server, parts, url)
  const sdk = await import('@modelcontextprotocol/client')
  const wire = new McpSessionWire(url.origin, parts.fetch, signal, accessTokens !== undefined)
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
  const client = createMcpClient(sdk, 'auto')
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

/** Provides an access token to the SDK, which repeats a request once after a 401. */
class McpBearer implements AuthProvider {
  /** Error of the last attempt to renew the token. */
  failure: unknown

  private constructor(
    private readonly tokens: McpAccessTokens,
    private sent: string,
  ) {}

  /** @throws McpFailure  not signed in, or the token would be sent unencrypted */
  static async open(tokens: McpAccessTokens, url: URL): Promise<McpBearer> {
    if (isUnencryptedRemote(url))
      throw new McpFailure(
        'credential_unavailable',
        `The access token would be sent to ${url.host} without encryption.`,
      )
    return new McpBearer(tokens, await tokens.current())
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

/**
 * @throws McpFailure  the credential is missing, is not released for the host, would be sent unencrypted, or
 * does not resolve
 */
async function credentialOf(
  { credentialRef, workspaceId }: McpEndpoint,
  { environment, isReleased }: McpHttpParts,
  url: URL,
): Promise<string | undefined> {
  if (credentialRef === null) return undefined
  const failed: CreateFailure = (_trouble, reason, { hint = '' } = {}) =>
    new McpFailure('credential_unavailable', [`The server ${reason}.`, hint].join(' ').trim())
  return resolveReleasedSecret({ environment, isReleased, failed }, credentialRef, workspaceId, url)
}

/** Requests of a session, within their limits. Records what is needed to describe a failure. */
class McpSessionWire {
  #status: number | undefined
  #failure: unknown
  #bytes = 0
  #requests = 0
  readonly #flooded = new AbortController()
  /** Fires when the caller aborts, or when the server sends too many requests. */
  readonly signal: AbortSignal

  constructor(
    private readonly origin: string,
    private readonly send: typeof fetch,
    private readonly until: AbortSignal,
    private readonly hasTokens: boolean,
  ) {
    this.signal = AbortSignal.any([until, this.#flooded.signal])
  }

  /**
   * Sends requests of the SDK. Opens no stream for unsolicited messages of the server, because they are not
   * used.
   */
  readonly fetch = async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(input)
    if (url.origin !== this.origin) throw new Error(`${url.origin} is not ${this.origin}`)
    if (init.method === 'GET') return new Response(null, { status: 405 })
    // The SDK answers every request of a server, and one response can contain a hundred thousand of them.
    if (++this.#requests > sessionRequestsMax) this.#flooded.abort()
    this.signal.throwIfAborted()
    const signal = init.signal ? AbortSignal.any([init.signal, this.signal]) : this.signal
    try {
      const answer = await this.send(url, { ...init, signal })
      if (init.method === 'POST') this.#status = answer.status
      return await requireSingleMessage(answer, answer.body?.pipeThrough(this.#counted()) ?? null)
    } catch (error) {
      if (!(error instanceof BatchRefused)) this.#failure ??= error
      throw error
    }
  }

  failureOf(error: unknown): McpFailure {
    const cause = this.hasTokens && this.#status !== undefined ? namedCause(error) : error
    const failure = (code: McpFailureCode, message: string) => new McpFailure(code, message, cause)
    const refusal = endpointRefusalIn(this.#failure)
    if (refusal)
      return failure(
        'endpoint_refused',
        `The runtime may not call the address: ${refusal.message}. ${refusal.hint}`,
      )
    if (this.#bytes > sessionBytesMax)
      return failure('too_large', `The server sent more than ${sessionBytesMax} bytes.`)
    if (this.#flooded.signal.aborted)
      return failure('protocol_error', `The server sent more than ${sessionRequestsMax} requests.`)
    if (this.until.aborted) return mcpTimeout(cause)
    return this.#status === undefined || this.#failure !== undefined
      ? failure('unreachable', 'The server cannot be reached. Check the url, and that the server runs.')
      : failure(...failureByStatus(this.#status, this.hasTokens))
  }

  #counted(): TransformStream<Uint8Array, Uint8Array> {
    return new TransformStream({
      transform: (part, controller) => {
        this.#bytes += part.length
        if (this.#bytes > sessionBytesMax) controller.error(new Error('too large'))
        else controller.enqueue(part)
      },
    })
  }
}

/**
 * Refused JSON-RPC batch. This client sends no batches, and a batch of requests would block the session until
 * all are answered.
 */
class BatchRefused extends Error {
  override readonly name = 'BatchRefused'
}

/**
 * Returns the response, unless it is JSON with several messages.
 *
 * @throws BatchRefused
 */
async function requireSingleMessage(
  { status, headers }: Response,
  body: ReadableStream<Uint8Array> | null,
): Promise<Response> {
  if (body === null || !headers.get('content-type')?.toLowerCase().includes('application/json'))
    return new Response(body, { status, headers })
  const text = await new Response(body).text()
  if (/^\s*\[/.test(text)) throw new BatchRefused('several messages at once')
  return new Response(text, { status, headers })
}

/** Returns the failure of a session by the status of its last response. */
function failureByStatus(status: number, hasTokens: boolean): [McpFailureCode, string] {
  if (status === 401 || status === 403)
    return [
      'unauthorized',
      `The server answered with status ${status}. ${hasTokens ? 'Sign in to it again, or ask for access to it.' : 'Check the key that credentialRef names.'}`,
    ]
  if (status >= 300 && status < 400)
    return [
      'redirected',
      'The server answered with a redirect, which is not followed. Use the target address instead.',
    ]
  if (status >= 400) return ['http_error', `The server answered with status ${status}. Check the url.`]
  return [
    'protocol_error',
    'The server does not answer as an MCP server by Streamable HTTP does. Check the url.',
  ]
}
