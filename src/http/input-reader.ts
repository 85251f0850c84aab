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

/** Validated input of a handler, and the names of ignored body fields. */
export interface ValidatedInput {
  readonly input: { params: object; query: unknown; body: unknown }
  readonly ignored: readonly string[]
}

export type ReadInput = (
  incoming: IncomingRequest,
  rawParams: Record<string, string>,
  reservation: BodyReservation,
) => Promise<ValidatedInput>

export interface InputReaderOptions {
  /** Folder for uploaded files, which exist until their request ends. */
  readonly uploadDir: string
  readonly clock: Clock
  /** Decodes large bodies of the route in a worker thread. If undefined, they are decoded on the event loop. */
  readonly decodeInThread: ((bytes: Buffer) => Promise<DecodedBody>) | undefined
}

/**
 * Returns a reader that validates the input of a route: first the path, then the query, then the body. The reader
 * throws the first error that it finds.
 *
 * @see docs/api.md
 */
export function createInputReader(route: Route, options: InputReaderOptions): ReadInput {
  const names = [...route.path.matchAll(/:([A-Za-z]+)/g)].map(match => match[1] as ParamName)
  const paramsSchema = z.object(Object.fromEntries(names.map(name => [name, paramSchemas[name]])))
  const { query: querySchema } = route
  const readBody = createBodyReader(route.body, options)

  return async (incoming, rawParams, reservation) => {
    const params = names.length > 0 ? validate(paramsSchema, rawParams) : rawParams
    const rawQuery = parseQuery(incoming.search)
    const query = querySchema && validate(querySchema, rawQuery)
    if (!readBody) return { input: { params, query, body: undefined }, ignored: [] }
    const { body, ignored } = await readBody(incoming, reservation)
    return { input: { params, query, body }, ignored }
  }
}

type ReadBody = (
  incoming: IncomingRequest,
  reservation: BodyReservation,
) => Promise<{ body: unknown; ignored: readonly string[] }>

function createBodyReader(body: Body | undefined, options: InputReaderOptions): ReadBody | undefined {
  if (!body) return undefined
  if (body.kind === 'multipart') {
    const openForm = createFormReader(body, options.uploadDir)
    return async (incoming, reservation) => ({ body: openForm(incoming, reservation), ignored: [] })
  }
  const { schema, limitBytes } = body
  const decodeInline = createDecoder(body)
  const { clock, decodeInThread } = options
  const decode = (bytes: Buffer) =>
    decodeInThread && blocksEventLoop(bytes) ? decodeInThread(bytes) : decodeInline(bytes)
  if (body.kind === 'ndjson')
    return async (incoming, reservation) => {
      checkContentType(incoming.headers, 'application/x-ndjson')
      const source = incoming.openBody()
      return { body: readNdjsonLines({ source, decode, limitBytes, reservation }), ignored: [] }
    }
  const isOptional = canBeEmpty(body)
  const read: ReadBody = async (incoming, reservation) => {
    if (isOptional && !incoming.hasBody) return { body: validate(schema, {}), ignored: [] }
    checkContentType(incoming.headers, 'application/json')
    const { declaredBytes } = incoming
    const bytes = await readBodyBytes({
      open: () => incoming.openBody(),
      declaredBytes,
      limitBytes,
      reservation,
      clock,
    })
    if (isOptional && bytes.length === 0) return { body: validate(schema, {}), ignored: [] }
    if (bytes.length === 0)
      throw new WbError('validation_error', 'the body is empty; a JSON value is expected')
    const { value, ignored } = await decode(bytes)
    return { body: value, ignored }
  }
  const { invalidBodyCode } = body
  return invalidBodyCode ? (...args) => read(...args).catch(error => rethrowAs(invalidBodyCode, error)) : read
}

/** Rethrows a validation error with the code that the route uses for invalid bodies. */
function rethrowAs(code: ErrorCode, error: unknown): never {
  if (error instanceof WbError && error.code === 'validation_error')
    throw new WbError(code, error.message, { hint: error.hint })
  throw error
}
