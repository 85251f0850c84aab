import { isObject } from '../../base/is-object.ts'

/** ID of a JSON-RPC request; null if unknown. */
export type RpcId = string | number | null

/** The fields of a client's message that the bridge reads. */
export interface RpcMessage {
  readonly method?: string
  readonly id?: RpcId
  readonly params?: Readonly<Record<string, unknown>>
}

/** A message that requires a response. */
export type RpcRequest = RpcMessage & { readonly method: string; readonly id: RpcId }

/** @see https://www.jsonrpc.org/specification#error_object */
export const rpcErrorCodes = {
  notJson: -32_700,
  notARequest: -32_600,
  invalidParams: -32_602,
  failed: -32_000,
}

/** Metadata field with the protocol version. The 2026 and later revisions of the protocol require it in every request. */
const versionField = 'io.modelcontextprotocol/protocolVersion'

/** Returns the protocol version in a message; undefined for clients older than the 2026 revision. */
export function protocolVersionOf({ params }: RpcMessage): string | undefined {
  const version = fieldsOf(params?._meta)[versionField]
  return typeof version === 'string' ? version : undefined
}

export function rpcErrorResponse(id: RpcId, code: number, message: string, data?: object) {
  return { jsonrpc: '2.0', id, error: { code, message, ...(data && { data }) } }
}

/** Returns the result of a tool call that `wb mcp serve` rejects, in the protocol version of its request. */
export function rejectedToolCall(request: RpcRequest, payload: object | string) {
  const text = typeof payload === 'string' ? payload : JSON.stringify(payload, null, 2)
  const versionFields = protocolVersionOf(request) === undefined ? {} : { resultType: 'complete' }
  return {
    jsonrpc: '2.0',
    id: request.id,
    result: { ...versionFields, content: [{ type: 'text', text }], isError: true },
  }
}

/** Returns a copy of an object; for other values, an empty object. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? { ...value } : {}
}
