import { type RpcRequest, versionOf } from './message.ts'

/** Field of `params` that is repeated in a header, by method. */
const namedBy: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
}

/** Returns the headers of a request over Streamable HTTP, as its protocol version requires them. */
export function headersOf(request: RpcRequest): Record<string, string> {
  const { method, params } = request
  const headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
  const version = versionOf(request)
  if (version === undefined || !isPlain(version)) return headers
  const name = Object.hasOwn(namedBy, method) ? params?.[namedBy[method]!] : undefined
  return {
    ...headers,
    'mcp-protocol-version': version,
    'mcp-method': encoded(method),
    ...(typeof name === 'string' && { 'mcp-name': encoded(name) }),
  }
}

/**
 * Encodes text that contains other than visible ASCII characters as base64, with the prefix and suffix of the
 * protocol.
 */
function encoded(text: string): string {
  return isPlain(text) ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`
}

function isPlain(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)
}
