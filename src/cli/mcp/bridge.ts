import { parseJson } from '../../base/parse-json.ts'
import type { RawCall } from '../../client/client.ts'
import { eventsOf } from '../../client/events.ts'
import { errorFromResponse } from '../../client/failure.ts'
import type { Incoming } from '../../client/fetch.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'
import { type Allowance, requiredAllowance } from './allowances.ts'
import { headersOf } from './headers.ts'
import {
  codes,
  fieldsOf,
  type RpcId,
  type RpcMessage,
  type RpcRequest,
  rejectedToolCall,
  rpcErrorResponse,
} from './message.ts'
import { attemptsMax, errorToReport, IncompleteResponse, pauseMs } from './retry.ts'

export interface BridgeParts {
  /** Path of the workspace's MCP route. */
  readonly path: string
  /** Sends a request to the runtime. Each call looks for the current runtime. */
  readonly raw: (call: RawCall) => Promise<Incoming>
  /** Waits between attempts, at most until the signal fires. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>
  /** Permissions in addition to the read-only tools. */
  readonly allowed: ReadonlySet<Allowance>
  /** Sends one message to the client. */
  readonly write: (message: object) => void
  /** Aborts all calls. */
  readonly signal: AbortSignal
}

/** Maximum number of concurrent calls. */
const callsMax = 64

/**
 * Forwards the messages of an MCP client to the route of a workspace, and the responses back as they arrive.
 * Requests that are not allowed are not forwarded.
 *
 * @see docs/security.md#rule-9
 */
export class McpBridge {
  readonly #parts: BridgeParts
  readonly #calls = new Map<RpcId, AbortController>()
  readonly #running = new Set<Promise<void>>()

  constructor(parts: BridgeParts) {
    this.#parts = parts
  }

  /** Handles one line from the client. */
  take(line: string): void {
    if (line.trim() === '') return
    const sent = parseJson(line)
    const message = fieldsOf(sent) as RpcMessage
    if (sent === undefined) this.#parts.write(rpcErrorResponse(null, codes.notJson, 'the line is not JSON'))
    else if (typeof message.method !== 'string') this.#refuse(sent)
    else if (message.id === undefined) this.#notified(message)
    else this.#run(message as RpcRequest)
  }

  #run(message: RpcRequest): void {
    const running = this.#answer(message).finally(() => {
      this.#running.delete(running)
    })
    this.#running.add(running)
  }

  /** Resolves when all requests are answered. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  /** Ignores responses of the client, as the bridge sends no requests. Rejects anything else. */
  #refuse(sent: unknown): void {
    const { result, error } = fieldsOf(sent)
    if (result !== undefined || error !== undefined) return
    this.#parts.write(
      rpcErrorResponse(null, codes.notARequest, 'a line must contain one JSON-RPC request, not a batch'),
    )
  }

  /** Handles cancellation here, because requests to the runtime are independent of each other. */
  #notified({ method, params }: RpcMessage): void {
    if (method === 'notifications/cancelled') this.#calls.get(params?.requestId as RpcId)?.abort()
  }

  async #answer(message: RpcRequest): Promise<void> {
    const { id } = message
    const refusal = this.#refusal(message)
    if (refusal) {
      this.#parts.write(refusal)
      return
    }
    const call = new AbortController()
    this.#calls.set(id, call)
    const signal = AbortSignal.any([call.signal, this.#parts.signal])
    try {
      await this.#forward(message, signal)
    } catch (error) {
      if (!signal.aborted) this.#parts.write(failureTold(id, error))
    } finally {
      this.#calls.delete(id)
    }
  }

  #refusal(request: RpcRequest): object | undefined {
    const { id, method, params } = request
    if (typeof id !== 'string' && typeof id !== 'number')
      return rpcErrorResponse(null, codes.notARequest, 'the id must be a string or a number')
    if (this.#calls.has(id))
      return rpcErrorResponse(id, codes.notARequest, 'a request with this id is in progress')
    if (this.#calls.size >= callsMax)
      return rpcErrorResponse(id, codes.failed, `${callsMax} requests are in progress; wait for one to end`)
    if (method !== 'tools/call') return undefined
    const name = params?.name
    if (typeof name !== 'string')
      return rpcErrorResponse(id, codes.invalidParams, 'the name of a tool must be a string')
    const required = requiredAllowance(name)
    if (required === undefined)
      return rejectedToolCall(request, `MCP error ${codes.invalidParams}: Tool ${name} not found`)
    if (required === null || this.#parts.allowed.has(required)) return undefined
    return rejectedToolCall(request, {
      outcome: 'denied',
      code: 'scope_required',
      required,
      subjectScopes: [...this.#parts.allowed],
      message: `this client may not call ${name}: wb mcp serve runs without --allow ${required}`,
    })
  }

  /** @throws the error that `fatal` returns, or the last failure */
  async #forward(request: RpcRequest, signal: AbortSignal): Promise<void> {
    const { path, raw, pause } = this.#parts
    // Serialized again, so that the runtime reads the same tool name that was checked here.
    const call = { method: 'POST', path, headers: headersOf(request), body: JSON.stringify(request), signal }
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#pass(request, await raw(call), signal)
      } catch (error) {
        const reported = errorToReport(error, request)
        if (reported !== undefined) throw reported
        if (attempt === attemptsMax) throw error
        await pause(pauseMs(attempt), signal)
        signal.throwIfAborted()
      }
    }
  }

  /** Forwards the messages of a response to the client. @throws BrokenOff  when the result is missing */
  async #pass(request: RpcRequest, answer: Incoming, signal: AbortSignal): Promise<void> {
    let isAnswered = false
    for await (const message of messagesIn(answer, signal)) {
      if (signal.aborted) return
      isAnswered ||= 'result' in message || 'error' in message
      this.#parts.write(request.method === 'tools/list' ? this.#filtered(message) : message)
    }
    if (!isAnswered && !signal.aborted) throw new IncompleteResponse()
  }

  #filtered(told: object): object {
    const { result } = fieldsOf(told)
    const { tools } = fieldsOf(result)
    if (!Array.isArray(tools)) return told
    const offered = tools.filter(tool => this.#isOffered(fieldsOf(tool).name))
    return { ...told, result: { ...fieldsOf(result), tools: offered } }
  }

  #isOffered(tool: unknown): boolean {
    const required = typeof tool === 'string' ? requiredAllowance(tool) : undefined
    return required === null || (required !== undefined && this.#parts.allowed.has(required))
  }
}

/** Yields the JSON-RPC messages of a response. @throws WbError, Unreachable  when the response is an error */
async function* messagesIn(answer: Incoming, signal: AbortSignal): AsyncGenerator<object> {
  if (answer.headers.get('content-type')?.startsWith('text/event-stream') && answer.body) {
    for await (const { data } of eventsOf(answer.body, signal)) yield data
    return
  }
  const text = await answer.text()
  const value = fieldsOf(parseJson(text))
  if (value.jsonrpc === '2.0') yield value
  else if (answer.status !== 202)
    throw await errorFromResponse({ ...answer, headers: answer.headers, text: async () => text })
}

function failureTold(id: RpcId, error: unknown): object {
  if (error instanceof Unreachable)
    return rpcErrorResponse(id, codes.failed, error.message, { hint: error.hint })
  if (!(error instanceof WbError)) {
    const isKnown = error instanceof Error && 'hint' in error
    return rpcErrorResponse(id, codes.failed, isKnown ? error.message : 'the request failed')
  }
  const { code, message, hint, facts } = error
  const { requestId } = facts
  return rpcErrorResponse(id, codes.failed, message, {
    code,
    ...(hint && { hint }),
    ...(requestId && { requestId }),
  })
}
