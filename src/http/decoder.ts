import type { Body } from '../contract/route.ts'
import { createIgnoredSearch } from './ignored-fields.ts'
import { parseRequestJson } from './request-json.ts'
import { validate } from './validate.ts'

/** A validated JSON value, and the names of the fields that its schema dropped. */
export interface DecodedBody {
  readonly value: unknown
  readonly ignored: readonly string[]
}

/**
 * Returns a decoder for a route's JSON bodies, or for the lines of its NDJSON bodies. The decoder throws
 * `validation_error`, or the error code that a schema issue specifies.
 */
export function createDecoder({ schema }: Pick<Body, 'schema'>): (bytes: Buffer) => DecodedBody {
  const findIgnored = createIgnoredSearch(schema)
  return bytes => {
    const sent = parseRequestJson(bytes)
    return { value: validate(schema, sent), ignored: findIgnored(sent) }
  }
}
