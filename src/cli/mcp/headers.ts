import { protocolVersionOf, type RpcRequest } from './message.ts'

/** Field of `params` that the `mcp-name` header repeats, by method. */
const nameFieldOfMethod: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
}

/** Returns the headers of a request over Streamable HTTP, according to its protocol version. */
export function requestHeaders(request: RpcRequest): Record<string, string> {
  const { method, params } = request
  const headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
  const version = protocolVersionOf(request)
  if (version === undefined || !isVisibleAscii(version)) return headers
  const name = Object.hasOwn(nameFieldOfMethod, method) ? params?.[nameFieldOfMethod[method]!] : undefined
  return {
    ...headers,
    'mcp-protocol-version': version,
    'mcp-method': encodeHeader(method),
    ...(typeof name === 'string' && { 'mcp-name': encodeHeader(name) }),
  }
}

/**
 * Encodes text as base64, with the prefix and suffix that the protocol defines, unless it has only visible ASCII
 * characters.
 */
function encodeHeader(text: string): string {
  return isVisibleAscii(text) ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`
}

/** Returns true for text of visible ASCII characters that does not look like encoded text. */
function isVisibleAscii(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)
}
