/** ID of a JSON-RPC request; null if unknown. */
export type RpcId = string | number | null

/** Fields of a client message that the bridge uses. */
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

/** Metadata field of the protocol version, which every request has since the revision of 2026. */
const versionField = 'io.modelcontextprotocol/protocolVersion'

/** Returns the protocol version that a message names; undefined before the revision of 2026. */
export function protocolVersionOf({ params }: RpcMessage): string | undefined {
  const version = fieldsOf(params?._meta)[versionField]
  return typeof version === 'string' ? version : undefined
}

export function rpcErrorResponse(id: RpcId, code: number, message: string, data?: object) {
  return { jsonrpc: '2.0', id, error: { code, message, ...(data && { data }) } }
}

/** Returns the result of a tool call that `wb mcp serve` refuses, in the protocol version of its request. */
export function rejectedToolCall(request: RpcRequest, payload: object | string) {
  const text = typeof payload === 'string' ? payload : JSON.stringify(payload, null, 2)
  const kind = protocolVersionOf(request) === undefined ? {} : { resultType: 'complete' }
  return {
    jsonrpc: '2.0',
    id: request.id,
    result: { ...kind, content: [{ type: 'text', text }], isError: true },
  }
}

/** Returns the fields of an object, or none for other values. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}
