import { HTTPResponse } from 'h3'
import type { z } from 'zod'
import { WbError } from '../contract/errors.ts'
import type { BinaryBody, MediaType, Replies } from '../contract/route.ts'
import type { HeaderPairs } from './headers.ts'

/**
 * A response that keeps its headers as an array of pairs until they are written. Creating `Headers` would reduce the
 * throughput of a trivial route by a quarter. h3 accepts the pairs, and creates `Headers` only on demand.
 */
export class HttpReply extends HTTPResponse {
  readonly #status: number
  readonly #pairs: HeaderPairs

  constructor(
    status: number,
    pairs: HeaderPairs,
    body: string | Uint8Array | ReadableStream<Uint8Array> | null,
  ) {
    super(body as string | ReadableStream<Uint8Array> | null)
    this.#status = status
    this.#pairs = pairs
  }

  override get status(): number {
    return this.#status
  }

  override get headers(): Headers {
    return this.#pairs as unknown as Headers
  }
}

/** Response body as a string or bytes; `content` is null for an empty body and for streamed lines. */
export interface EncodedBody {
  readonly mediaType: string | null
  readonly content: string | Uint8Array | null
}

type EncodeReply = (status: number, body: unknown) => EncodedBody

/**
 * Returns an encoder for the responses of a route. A body is encoded with its schema, so undeclared fields cannot
 * leak. The encoder throws an `Error` if the handler returns an undeclared status or an invalid body, which are
 * bugs.
 */
export function createReplyEncoder(replies: Replies): EncodeReply {
  return (status, body) => {
    const declared = replies[status]
    if (declared === undefined) throw new Error(`the handler returned the undeclared status ${status}`)
    if (declared === null) return { mediaType: null, content: null }
    if (typeof declared === 'string') return encodeBodyWithoutSchema(declared, body)
    return { mediaType: 'application/json', content: encodeJson(declared, body) }
  }
}

function encodeBodyWithoutSchema(mediaType: MediaType, body: unknown): EncodedBody {
  if (mediaType === 'text/html' || mediaType === 'text/plain')
    return { mediaType: `${mediaType}; charset=utf-8`, content: body as string }
  if (mediaType === 'image/*') {
    const { mediaType: exact, bytes } = body as BinaryBody
    return { mediaType: exact, content: bytes }
  }
  return { mediaType, content: mediaType === 'application/json' ? JSON.stringify(body) : null }
}

function encodeJson(schema: z.ZodType, body: unknown): string {
  const result = schema.safeParse(body)
  if (result.success) return JSON.stringify(result.data)
  const [issue] = result.error.issues
  throw new Error(
    `the handler returned an invalid body: ${issue!.path.map(String).join('.')}: ${issue!.message}`,
  )
}

/** Error codes that any route may return without declaring them. */
const universalCodes: ReadonlySet<string> = new Set([
  'validation_error',
  'unauthorized',
  'forbidden',
  'forbidden_origin',
  'payload_too_large',
  'headers_too_large',
  'rate_limited',
  'overloaded',
  'draining',
  'internal_error',
  'control_plane_unavailable',
  'not_found',
])

/**
 * Replaces an error whose code the route does not declare with an internal error, so that tests detect the bug.
 */
export function checkDeclared(error: unknown, declared: readonly string[]): unknown {
  if (!(error instanceof WbError) || universalCodes.has(error.code) || declared.includes(error.code))
    return error
  return new Error(`the handler threw the undeclared code ${error.code}: ${error.message}`, { cause: error })
}
