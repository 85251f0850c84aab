import type { AuthProvider, Client } from '@modelcontextprotocol/client'
import { isUnencryptedRemote } from '../../base/loopback.ts'
import type { ConfigEnvironment } from '../../config/config-environment.ts'
import type { McpFailureCode } from '../../contract/mcp-servers.ts'
import { type IsReleased, resolveReleasedSecret } from '../endpoint.ts'
import { endpointRefusalIn } from '../endpoint-guard.ts'
import {
  callToolOf,
  causeWithNameOnly,
  createMcpClient,
  listToolsOf,
  type McpCall,
  McpFailure,
  type McpSdk,
  type McpTool,
  type McpToolResult,
  mcpCredentialFailure,
  mcpEndpointRefusal,
  mcpTimeout,
  sessionBytesMax,
  sessionRequestsMax,
} from './client.ts'

/** Address and credential of an MCP server. */
export interface McpEndpoint {
  readonly workspaceId: string
  readonly url: string
  readonly credentialRef: string | null
  /** Access tokens of the caller, which are sent instead of the credential. */
  readonly accessTokens?: McpAccessTokens
}

/** Access tokens of one subject for one server. */
export interface McpAccessTokens {
  /** @throws McpFailure  the subject is not signed in */
  current(): Promise<string>
  /**
   * Returns a replacement for a token that the server rejected.
   *
   * @throws McpFailure  the subject must sign in again
   */
  renew(rejectedToken: string): Promise<string>
}

export interface McpHttpDependencies {
  readonly environment: ConfigEnvironment
  /** Called for each session, so that a changed release takes effect immediately. */
  readonly isReleased: IsReleased
  /** Must check connections with the endpoint guard, and must not follow redirects. */
  readonly fetch: typeof fetch
}

/**
 * Returns the tools of a server. Opens a new session.
 *
 * @param signal  ends the session; there is no timeout
 * @throws McpFailure
 */
export async function listMcpTools(
  server: McpEndpoint,
  deps: McpHttpDependencies,
  signal: AbortSignal,
): Promise<McpTool[]> {
  return inSession(server, deps, signal, listToolsOf)
}

/**
 * Calls a tool of a server. Opens a new session.
 *
 * @param signal  ends the session; there is no timeout
 * @returns the parts of the result, joined with line breaks. Notes replace parts that are not text. If the result
 *   contains no text, its structured content is added as JSON
 * @throws McpFailure
 * @see docs/tool-servers.md#limits-and-results-of-tool-calls
 */
export async function callMcpTool(
  server: McpEndpoint,
  call: McpCall,
  deps: McpHttpDependencies,
  signal: AbortSignal,
): Promise<McpToolResult> {
  return inSession(server, deps, signal, (client, sessionSignal, sdk) =>
    callToolOf(call, client, sessionSignal, sdk),
  )
}

/**
 * Opens a session, calls a function, and ends the session. The credential is resolved for this session and host.
 *
 * @throws McpFailure
 * @see docs/security.md#rule-1, docs/security.md#rule-14
 */
async function inSession<T>(
  server: McpEndpoint,
  deps: McpHttpDependencies,
  signal: AbortSignal,
  work: (client: Client, sessionSignal: AbortSignal, sdk: McpSdk) => Promise<T>,
): Promise<T> {
  const url = new URL(server.url)
  const { accessTokens } = server
  const bearer = accessTokens && (await McpBearer.open(accessTokens, url))
  const credential = bearer ? undefined : await resolveServerCredential(server, deps, url)
  const sdk = await import('@modelcontextprotocol/client')
  const requests = new McpSessionRequests(url.origin, deps.fetch, signal, accessTokens !== undefined)
  const transport = new sdk.StreamableHTTPClientTransport(url, {
    fetch: requests.fetch,
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
    await client.connect(transport, { signal: requests.signal })
    return await work(client, requests.signal, sdk)
  } catch (error) {
    throw bearer?.failure ?? requests.failureOf(error)
  } finally {
    await transport.terminateSession().catch(() => {})
    await client.close()
  }
}

/** Provides access tokens to the SDK. The SDK repeats a request once after a 401 response. */
class McpBearer implements AuthProvider {
  /** Error of the last failed attempt to renew the token. */
  failure: unknown

  private constructor(
    private readonly tokens: McpAccessTokens,
    private latestToken: string,
  ) {}

  /** @throws McpFailure  the subject is not signed in, or the token would be sent unencrypted */
  static async open(tokens: McpAccessTokens, url: URL): Promise<McpBearer> {
    if (isUnencryptedRemote(url))
      throw new McpFailure(
        'credential_unavailable',
        `The access token would be sent to ${url.host} without encryption.`,
      )
    return new McpBearer(tokens, await tokens.current())
  }

  async token(): Promise<string> {
    return this.latestToken
  }

  async onUnauthorized(): Promise<void> {
    try {
      this.latestToken = await this.tokens.renew(this.latestToken)
    } catch (error) {
      this.failure = error
      throw error
    }
  }
}

/**
 * Resolves the credential of a server; undefined if it has none.
 *
 * @throws McpFailure  the credential is not released for the host, would be sent unencrypted, or does not resolve
 */
async function resolveServerCredential(
  { credentialRef, workspaceId }: McpEndpoint,
  { environment, isReleased }: McpHttpDependencies,
  url: URL,
): Promise<string | undefined> {
  if (credentialRef === null) return undefined
  const deps = { environment, isReleased, createFailure: mcpCredentialFailure }
  return resolveReleasedSecret(deps, credentialRef, workspaceId, url)
}

/** Sends the requests of a session and enforces its limits. Records the cause of a failure. */
class McpSessionRequests {
  #status: number | undefined
  #failure: unknown
  #bytes = 0
  #requests = 0
  readonly #requestLimit = new AbortController()
  /** Aborts when the caller aborts, or when the server sends too many requests. */
  readonly signal: AbortSignal

  constructor(
    private readonly origin: string,
    private readonly fetchFn: typeof fetch,
    private readonly callerSignal: AbortSignal,
    private readonly hasTokens: boolean,
  ) {
    this.signal = AbortSignal.any([callerSignal, this.#requestLimit.signal])
  }

  /**
   * Sends the SDK's requests. Does not open a stream for messages that the server sends on its own, because this client
   * does not use them.
   */
  readonly fetch = async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(input)
    if (url.origin !== this.origin) throw new Error(`${url.origin} is not ${this.origin}`)
    if (init.method === 'GET') return new Response(null, { status: 405 })
    // The SDK responds to every request of a server, and one server response can contain a hundred thousand requests.
    if (++this.#requests > sessionRequestsMax) this.#requestLimit.abort()
    this.signal.throwIfAborted()
    const signal = init.signal ? AbortSignal.any([init.signal, this.signal]) : this.signal
    try {
      const response = await this.fetchFn(url, { ...init, signal })
      if (init.method === 'POST') this.#status = response.status
      return await requireSingleMessage(response, response.body?.pipeThrough(this.#countBytes()) ?? null)
    } catch (error) {
      if (!(error instanceof BatchRejected)) this.#failure ??= error
      throw error
    }
  }

  failureOf(error: unknown): McpFailure {
    const cause = this.hasTokens && this.#status !== undefined ? causeWithNameOnly(error) : error
    const failure = (code: McpFailureCode, message: string) => new McpFailure(code, message, cause)
    const refusal = endpointRefusalIn(this.#failure)
    if (refusal) return mcpEndpointRefusal(refusal, cause)
    if (this.#bytes > sessionBytesMax)
      return failure('too_large', `The server sent more than ${sessionBytesMax} bytes.`)
    if (this.#requestLimit.signal.aborted)
      return failure('protocol_error', `The server sent more than ${sessionRequestsMax} requests.`)
    if (this.callerSignal.aborted) return mcpTimeout(cause)
    return this.#status === undefined || this.#failure !== undefined
      ? failure(
          'unreachable',
          'The server cannot be reached. Check the url, and check that the server is running.',
        )
      : failure(...failureByStatus(this.#status, this.hasTokens))
  }

  #countBytes(): TransformStream<Uint8Array, Uint8Array> {
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
 * Thrown for a response that is a JSON-RPC batch. This client sends no batches, so a server has no reason to respond
 * with one. A batch of requests would block the session until the client has responded to all of them.
 */
class BatchRejected extends Error {
  override readonly name = 'BatchRejected'
}

/**
 * Returns a response with the given body.
 *
 * @throws BatchRejected  the response is JSON with several messages
 */
async function requireSingleMessage(
  { status, headers }: Response,
  body: ReadableStream<Uint8Array> | null,
): Promise<Response> {
  if (body === null || !headers.get('content-type')?.toLowerCase().includes('application/json'))
    return new Response(body, { status, headers })
  const text = await new Response(body).text()
  if (/^\s*\[/.test(text)) throw new BatchRejected('the response contains several messages')
  return new Response(text, { status, headers })
}

/** Returns the code and message of the failure for a failed session, by the status of its last response. */
function failureByStatus(status: number, hasTokens: boolean): [McpFailureCode, string] {
  if (status === 401 || status === 403)
    return [
      'unauthorized',
      `The server responded with status ${status}. ${hasTokens ? 'Sign in to the server again, or request access to it.' : 'Check the key that credentialRef refers to.'}`,
    ]
  if (status >= 300 && status < 400)
    return [
      'redirected',
      'The server responded with a redirect, which is not followed. Use the target address instead.',
    ]
  if (status >= 400) return ['http_error', `The server responded with status ${status}. Check the url.`]
  return [
    'protocol_error',
    'The server does not respond like an MCP server with Streamable HTTP. Check the url.',
  ]
}
