import { z } from 'zod'
import { type ErrorCode, WbError } from '../contract/errors.ts'
import { type ParamName, params as paramSchemas } from '../contract/ids.ts'
import type { Body, Route } from '../contract/route.ts'
import { checkContentType, readJson } from './body.ts'
import { ignoredFields } from './ignored.ts'
import type { Incoming } from './incoming.ts'
import { formReader } from './multipart.ts'
import { readLines } from './ndjson.ts'
import { parseQuery } from './query.ts'
import { validate } from './validate.ts'

/** What a handler is given, and the fields of the body that it is not. */
export interface Read {
  readonly input: { params: object; query: unknown; body: unknown }
  readonly ignored: readonly string[]
}

export type ReadInput = (incoming: Incoming, rawParams: Record<string, string>) => Promise<Read>

/**
 * Prepare the validation of a route's input: path, then query, then body; the first issue decides.
 *
 * @param uploadDir  for files while they are worked on
 * @see contract 1.2
 */
export function inputReader(route: Route, uploadDir: string): ReadInput {
  const names = [...route.path.matchAll(/:([A-Za-z]+)/g)].map(match => match[1] as ParamName)
  const paramsSchema = z.object(Object.fromEntries(names.map(name => [name, paramSchemas[name]])))
  const { query: querySchema } = route
  const readBody = bodyReader(route.body, uploadDir)

  return async (incoming, rawParams) => {
    const params = names.length > 0 ? validate(paramsSchema, rawParams) : rawParams
    const sent = parseQuery(incoming.search)
    const query = querySchema && validate(querySchema, sent)
    if (!readBody) return { input: { params, query, body: undefined }, ignored: [] }
    const { body, ignored } = await readBody(incoming)
    return { input: { params, query, body }, ignored }
  }
}

type ReadBody = (incoming: Incoming) => Promise<{ body: unknown; ignored: readonly string[] }>

function bodyReader(body: Body | undefined, uploadDir: string): ReadBody | undefined {
  if (!body) return undefined
  if (body.kind === 'multipart') {
    const formOf = formReader(body, uploadDir)
    return async incoming => ({ body: formOf(incoming), ignored: [] })
  }
  const { schema, limitBytes } = body
  if (body.kind === 'ndjson')
    return async incoming => {
      checkContentType(incoming.headers, 'application/x-ndjson')
      return { body: readLines(incoming.source, schema, limitBytes), ignored: [] }
    }
  const findIgnored = ignoredFields(schema)
  const read: ReadBody = async incoming => {
    if (body.optional && !incoming.hasBody) return { body: validate(schema, {}), ignored: [] }
    checkContentType(incoming.headers, 'application/json')
    const sent = await readJson(incoming.source, limitBytes)
    return { body: validate(schema, sent), ignored: findIgnored(sent) }
  }
  const { refusal } = body
  return refusal ? incoming => read(incoming).catch(error => throwAs(refusal, error)) : read
}

/** A body that does not fit, under the code that its protocol has for that. */
function throwAs(code: ErrorCode, error: unknown): never {
  if (error instanceof WbError && error.code === 'validation_error')
    throw new WbError(code, error.message, { hint: error.hint })
  throw error
}
