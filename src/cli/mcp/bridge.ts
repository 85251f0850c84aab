import { parseJson } from '../../base/parse-json.ts'
import type { RawCall } from '../../client/client.ts'
import { errorFromResponse } from '../../client/error-from-response.ts'
import type { IncomingResponse } from '../../client/fetch.ts'
import { readEvents } from '../../client/read-events.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'
import { requestHeaders } from './headers.ts'
import { type McpPermission, requiredPermission } from './mcp-permissions.ts'
import {
  fieldsOf,
  type RpcId,
  type RpcMessage,
  type RpcRequest,
  rejectedToolCall,
  rpcErrorCodes,
  rpcErrorResponse,
} from './message.ts'
import { attemptsMax, errorToReport, IncompleteResponse, pauseMs } from './retry.ts'

export interface BridgeOptions {
  /** Path of the workspace's MCP route. */
  readonly path: string
  /** Sends a request to the runtime. Looks up the address of the runtime at each call. */
  readonly sendRequest: (call: RawCall) => Promise<IncomingResponse>
  /** Waits between attempts. Ends early if the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
  /** Permissions of the client, besides the use of read-only tools. */
  readonly permissions: ReadonlySet<McpPermission>
  /** Writes one message to the client. */
  readonly write: (message: object) => void
  /** Aborts all calls. */
  readonly signal: AbortSignal
}

/** Maximum number of concurrent calls. */
const callsMax = 64

/**
 * Forwards requests of an MCP client to the MCP route of a workspace, and returns the responses as they arrive.
 * Requests that are not allowed are not forwarded.
 *
 * @see docs/security.md#rule-9
 */
export class McpBridge {
  readonly #options: BridgeOptions
  readonly #calls = new Map<RpcId, AbortController>()
  readonly #running = new Set<Promise<void>>()

  constructor(options: BridgeOptions) {
    this.#options = options
  }

  /** Handles one line from the client. */
  handleLine(line: string): void {
    if (line.trim() === '') return
    const value = parseJson(line)
    const message = fieldsOf(value) as RpcMessage
    if (value === undefined)
      this.#options.write(rpcErrorResponse(null, rpcErrorCodes.notJson, 'the line is not JSON'))
    else if (typeof message.method !== 'string') this.#rejectNonRequest(value)
    else if (message.id === undefined) this.#handleNotification(message)
    else this.#start(message as RpcRequest)
  }

  #start(message: RpcRequest): void {
    const running = this.#handleRequest(message).finally(() => {
      this.#running.delete(running)
    })
    this.#running.add(running)
  }

  /** Resolves when all requests have a response. */
  async waitForRequests(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  /**
   * Rejects a message that is not a request. Responses are ignored, because the bridge sends no requests to the
   * client.
   */
  #rejectNonRequest(message: unknown): void {
    const { result, error } = fieldsOf(message)
    if (result !== undefined || error !== undefined) return
    this.#options.write(
      rpcErrorResponse(
        null,
        rpcErrorCodes.notARequest,
        'a line must contain one JSON-RPC request, not a batch',
      ),
    )
  }

  /**
   * Cancels a call by aborting its request. The notification is not forwarded, because the runtime handles each
   * request independently of others.
   */
  #handleNotification({ method, params }: RpcMessage): void {
    if (method === 'notifications/cancelled') this.#calls.get(params?.requestId as RpcId)?.abort()
  }

  async #handleRequest(message: RpcRequest): Promise<void> {
    const { id } = message
    const rejection = this.#checkRequest(message)
    if (rejection) {
      this.#options.write(rejection)
      return
    }
    const call = new AbortController()
    this.#calls.set(id, call)
    const signal = AbortSignal.any([call.signal, this.#options.signal])
    try {
      await this.#forward(message, signal)
    } catch (error) {
      if (!signal.aborted) this.#options.write(errorToResponse(id, error))
    } finally {
      this.#calls.delete(id)
    }
  }

  /** Returns the error response to a request that must not be forwarded; undefined for other requests. */
  #checkRequest(request: RpcRequest): object | undefined {
    const { id, method, params } = request
    if (typeof id !== 'string' && typeof id !== 'number')
      return rpcErrorResponse(null, rpcErrorCodes.notARequest, 'the id must be a string or a number')
    if (this.#calls.has(id))
      return rpcErrorResponse(id, rpcErrorCodes.notARequest, 'a request with this id is in progress')
    if (this.#calls.size >= callsMax)
      return rpcErrorResponse(
        id,
        rpcErrorCodes.failed,
        `${callsMax} requests are in progress; wait for one to end`,
      )
    if (method !== 'tools/call') return undefined
    const name = params?.name
    if (typeof name !== 'string')
      return rpcErrorResponse(id, rpcErrorCodes.invalidParams, 'the name of a tool must be a string')
    const required = requiredPermission(name)
    if (required === undefined)
      return rejectedToolCall(request, `MCP error ${rpcErrorCodes.invalidParams}: Tool ${name} not found`)
    if (required === null || this.#options.permissions.has(required)) return undefined
    return rejectedToolCall(request, {
      outcome: 'denied',
      code: 'scope_required',
      required,
      subjectScopes: [...this.#options.permissions],
      message: `this client may not call ${name}: wb mcp serve runs without --allow ${required}`,
    })
  }

  /** Forwards a request, and retries it if that is safe. @throws the error to report to the client */
  async #forward(request: RpcRequest, signal: AbortSignal): Promise<void> {
    const { path, sendRequest, pause } = this.#options
    // The parsed request is serialized again, so that the runtime reads the same tool name that was checked here.
    const call = {
      method: 'POST',
      path,
      headers: requestHeaders(request),
      body: JSON.stringify(request),
      signal,
    }
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#relay(request, await sendRequest(call), signal)
      } catch (error) {
        const errorForClient = errorToReport(error, request)
        if (errorForClient !== undefined) throw errorForClient
        if (attempt === attemptsMax) throw error
        await pause(pauseMs(attempt), signal)
        signal.throwIfAborted()
      }
    }
  }

  /** Forwards the messages of a response to the client. @throws IncompleteResponse  when the result is missing */
  async #relay(request: RpcRequest, response: IncomingResponse, signal: AbortSignal): Promise<void> {
    let hasResult = false
    for await (const message of readMessages(response, signal)) {
      if (signal.aborted) return
      hasResult ||= 'result' in message || 'error' in message
      this.#options.write(request.method === 'tools/list' ? this.#withoutForbiddenTools(message) : message)
    }
    if (!hasResult && !signal.aborted) throw new IncompleteResponse()
  }

  #withoutForbiddenTools(message: object): object {
    const { result } = fieldsOf(message)
    const { tools } = fieldsOf(result)
    if (!Array.isArray(tools)) return message
    const allowed = tools.filter(tool => this.#isAllowed(fieldsOf(tool).name))
    return { ...message, result: { ...fieldsOf(result), tools: allowed } }
  }

  #isAllowed(toolName: unknown): boolean {
    const required = typeof toolName === 'string' ? requiredPermission(toolName) : undefined
    return required === null || (required !== undefined && this.#options.permissions.has(required))
  }
}

/** Yields the JSON-RPC messages of a response. @throws WbError, Unreachable  when the response is an error */
async function* readMessages(response: IncomingResponse, signal: AbortSignal): AsyncGenerator<object> {
  if (response.headers.get('content-type')?.startsWith('text/event-stream') && response.body) {
    for await (const { data } of readEvents(response.body, signal)) yield data
    return
  }
  const text = await response.text()
  const value = fieldsOf(parseJson(text))
  if (value.jsonrpc === '2.0') yield value
  else if (response.status !== 202)
    throw await errorFromResponse({ ...response, headers: response.headers, text: async () => text })
}

function errorToResponse(id: RpcId, error: unknown): object {
  if (error instanceof Unreachable)
    return rpcErrorResponse(id, rpcErrorCodes.failed, error.message, { hint: error.hint })
  if (!(error instanceof WbError)) {
    const isForUser = error instanceof Error && 'hint' in error
    return rpcErrorResponse(id, rpcErrorCodes.failed, isForUser ? error.message : 'the request failed')
  }
  const { code, message, hint, facts } = error
  const { requestId } = facts
  return rpcErrorResponse(id, rpcErrorCodes.failed, message, {
    code,
    ...(hint && { hint }),
    ...(requestId && { requestId }),
  })
}
