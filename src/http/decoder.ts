import { parseRequestJson } from '../base/request-json.ts'
import type { Body } from '../contract/route.ts'
import { createIgnoredFieldFinder } from './ignored-fields.ts'
import { validate } from './validate.ts'

/** A validated JSON value, and the names of the fields that its schema dropped. */
export interface DecodedBody {
  readonly value: unknown
  readonly ignored: readonly string[]
}

/**
 * Returns a decoder for the JSON body of a route, or for one line of its NDJSON body. The decoder throws
 * `validation_error`, or the error code that the schema specifies.
 */
export function createDecoder({ schema }: Pick<Body, 'schema'>): (bytes: Buffer) => DecodedBody {
  const findIgnored = createIgnoredFieldFinder(schema)
  return bytes => {
    const parsed = parseRequestJson(bytes)
    return { value: validate(schema, parsed, 'body'), ignored: findIgnored(parsed) }
  }
}
