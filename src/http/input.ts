import { z } from 'zod'
import type { Clock } from '../base/clock.ts'
import { type ErrorCode, WbError } from '../contract/errors.ts'
import { type ParamName, params as paramSchemas } from '../contract/ids.ts'
import { type Body, canBeEmpty, type Route } from '../contract/route.ts'
import { checkContentType, readBytes } from './body.ts'
import type { BodyHold } from './body-memory.ts'
import { type Decoded, decoder } from './decode.ts'
import { isLarge } from './decoding.ts'
import type { Incoming } from './incoming.ts'
import { formReader } from './multipart.ts'
import { readLines } from './ndjson.ts'
import { parseQuery } from './query.ts'
import { validate } from './validate.ts'

/** Validated input of a handler, and the body fields that its schema dropped. */
export interface Read {
  readonly input: { params: object; query: unknown; body: unknown }
  readonly ignored: readonly string[]
}

export type ReadInput = (
  incoming: Incoming,
  rawParams: Record<string, string>,
  hold: BodyHold,
) => Promise<Read>

export interface ReaderParts {
  /** Folder for uploaded files while their request is handled. */
  readonly uploadDir: string
  readonly clock: Clock
  /** Decodes large bodies of the route off the event loop. Without it, the event loop decodes them. */
  readonly decodeElsewhere: ((bytes: Buffer) => Promise<Decoded>) | undefined
}

/**
 * Returns a reader that validates a route's input: path, then query, then body. The first issue is thrown.
 *
 * @see docs/api.md
 */
export function inputReader(route: Route, parts: ReaderParts): ReadInput {
  const names = [...route.path.matchAll(/:([A-Za-z]+)/g)].map(match => match[1] as ParamName)
  const paramsSchema = z.object(Object.fromEntries(names.map(name => [name, paramSchemas[name]])))
  const { query: querySchema } = route
  const readBody = bodyReader(route.body, parts)

  return async (incoming, rawParams, hold) => {
    const params = names.length > 0 ? validate(paramsSchema, rawParams) : rawParams
    const sent = parseQuery(incoming.search)
    const query = querySchema && validate(querySchema, sent)
    if (!readBody) return { input: { params, query, body: undefined }, ignored: [] }
    const { body, ignored } = await readBody(incoming, hold)
    return { input: { params, query, body }, ignored }
  }
}

type ReadBody = (incoming: Incoming, hold: BodyHold) => Promise<{ body: unknown; ignored: readonly string[] }>

function bodyReader(body: Body | undefined, parts: ReaderParts): ReadBody | undefined {
  if (!body) return undefined
  if (body.kind === 'multipart') {
    const formOf = formReader(body, parts.uploadDir)
    return async (incoming, hold) => ({ body: formOf(incoming, hold), ignored: [] })
  }
  const { schema, limitBytes } = body
  const decodeHere = decoder(body)
  const { clock, decodeElsewhere } = parts
  const decode = (bytes: Buffer) =>
    decodeElsewhere && isLarge(bytes) ? decodeElsewhere(bytes) : decodeHere(bytes)
  if (body.kind === 'ndjson')
    return async (incoming, hold) => {
      checkContentType(incoming.headers, 'application/x-ndjson')
      const source = incoming.openBody()
      return { body: readLines({ source, decode, limitBytes, hold }), ignored: [] }
    }
  const isOptional = canBeEmpty(body)
  const read: ReadBody = async (incoming, hold) => {
    if (isOptional && !incoming.hasBody) return { body: validate(schema, {}), ignored: [] }
    checkContentType(incoming.headers, 'application/json')
    const { declaredBytes } = incoming
    const bytes = await readBytes({ open: () => incoming.openBody(), declaredBytes, limitBytes, hold, clock })
    if (isOptional && bytes.length === 0) return { body: validate(schema, {}), ignored: [] }
    if (bytes.length === 0)
      throw new WbError('validation_error', 'the body is empty; a JSON value is expected')
    const { value, ignored } = await decode(bytes)
    return { body: value, ignored }
  }
  const { refusal } = body
  return refusal ? (...sent) => read(...sent).catch(error => throwAs(refusal, error)) : read
}

/** Rethrows a validation error of the body with the error code of the route's protocol. */
function throwAs(code: ErrorCode, error: unknown): never {
  if (error instanceof WbError && error.code === 'validation_error')
    throw new WbError(code, error.message, { hint: error.hint })
  throw error
}
