import { z } from 'zod'
import type { Clock } from '../base/clock.ts'
import { type ErrorCode, WbError } from '../contract/errors.ts'
import { type ParamName, params as paramSchemas } from '../contract/ids.ts'
import { type Body, canBeEmpty, type Route } from '../contract/route.ts'
import type { BodyReservation } from './body-memory.ts'
import { blocksEventLoop } from './decode-thread.ts'
import { createDecoder, type DecodedBody } from './decoder.ts'
import type { IncomingRequest } from './incoming-request.ts'
import { createFormReader } from './multipart.ts'
import { readNdjsonLines } from './ndjson.ts'
import { parseQuery } from './query.ts'
import { checkContentType, readBodyBytes } from './request-bytes.ts'
import { validate } from './validate.ts'

/** Validated input of a handler, and the body fields that its schema dropped. */
export interface ValidatedInput {
  readonly input: { params: object; query: unknown; body: unknown }
  readonly ignored: readonly string[]
}

export type ReadInput = (
  incoming: IncomingRequest,
  rawParams: Record<string, string>,
  hold: BodyReservation,
) => Promise<ValidatedInput>

export interface ReaderParts {
  /** Folder for uploaded files while their request is handled. */
  readonly uploadDir: string
  readonly clock: Clock
  /** Decodes large bodies of the route off the event loop. Without it, the event loop decodes them. */
  readonly decodeElsewhere: ((bytes: Buffer) => Promise<DecodedBody>) | undefined
}

/**
 * Returns a reader that validates a route's input: path, then query, then body. The first issue is thrown.
 *
 * @see docs/api.md
 */
export function createInputReader(route: Route, parts: ReaderParts): ReadInput {
  const names = [...route.path.matchAll(/:([A-Za-z]+)/g)].map(match => match[1] as ParamName)
  const paramsSchema = z.object(Object.fromEntries(names.map(name => [name, paramSchemas[name]])))
  const { query: querySchema } = route
  const readBody = createBodyReader(route.body, parts)

  return async (incoming, rawParams, hold) => {
    const params = names.length > 0 ? validate(paramsSchema, rawParams) : rawParams
    const sent = parseQuery(incoming.search)
    const query = querySchema && validate(querySchema, sent)
    if (!readBody) return { input: { params, query, body: undefined }, ignored: [] }
    const { body, ignored } = await readBody(incoming, hold)
    return { input: { params, query, body }, ignored }
  }
}

type ReadBody = (
  incoming: IncomingRequest,
  hold: BodyReservation,
) => Promise<{ body: unknown; ignored: readonly string[] }>

function createBodyReader(body: Body | undefined, parts: ReaderParts): ReadBody | undefined {
  if (!body) return undefined
  if (body.kind === 'multipart') {
    const formOf = createFormReader(body, parts.uploadDir)
    return async (incoming, hold) => ({ body: formOf(incoming, hold), ignored: [] })
  }
  const { schema, limitBytes } = body
  const decodeHere = createDecoder(body)
  const { clock, decodeElsewhere } = parts
  const decode = (bytes: Buffer) =>
    decodeElsewhere && blocksEventLoop(bytes) ? decodeElsewhere(bytes) : decodeHere(bytes)
  if (body.kind === 'ndjson')
    return async (incoming, hold) => {
      checkContentType(incoming.headers, 'application/x-ndjson')
      const source = incoming.openBody()
      return { body: readNdjsonLines({ source, decode, limitBytes, hold }), ignored: [] }
    }
  const isOptional = canBeEmpty(body)
  const read: ReadBody = async (incoming, hold) => {
    if (isOptional && !incoming.hasBody) return { body: validate(schema, {}), ignored: [] }
    checkContentType(incoming.headers, 'application/json')
    const { declaredBytes } = incoming
    const bytes = await readBodyBytes({
      open: () => incoming.openBody(),
      declaredBytes,
      limitBytes,
      hold,
      clock,
    })
    if (isOptional && bytes.length === 0) return { body: validate(schema, {}), ignored: [] }
    if (bytes.length === 0)
      throw new WbError('validation_error', 'the body is empty; a JSON value is expected')
    const { value, ignored } = await decode(bytes)
    return { body: value, ignored }
  }
  const { refusal } = body
  return refusal ? (...sent) => read(...sent).catch(error => rethrowAs(refusal, error)) : read
}

/** Rethrows a validation error of the body with the error code of the route's protocol. */
function rethrowAs(code: ErrorCode, error: unknown): never {
  if (error instanceof WbError && error.code === 'validation_error')
    throw new WbError(code, error.message, { hint: error.hint })
  throw error
}
