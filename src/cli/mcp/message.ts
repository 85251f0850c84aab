/** Id of a JSON-RPC request; null where it is not known. */
export type Id = string | number | null

/** A message of a client, as much of it as matters on the way. */
export interface Message {
  readonly method?: string
  readonly id?: Id
  readonly params?: Readonly<Record<string, unknown>>
}

/** @see https://www.jsonrpc.org/specification#error_object */
export const codes = { notJson: -32_700, notARequest: -32_600, invalidParams: -32_602, failed: -32_000 }

export function failed(id: Id, code: number, message: string, data?: object) {
  return { jsonrpc: '2.0', id, error: { code, message, ...(data && { data }) } }
}

/** What a tool answers that was not called. */
export function uncalled(id: Id, payload: object | string) {
  const text = typeof payload === 'string' ? payload : JSON.stringify(payload, null, 2)
  return { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }], isError: true } }
}

/** The fields of an object; none of anything else. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}
