import type { Body } from '../contract/route.ts'
import { ignoredFields } from './ignored.ts'
import { parseJson } from './json.ts'
import { validate } from './validate.ts'

/** A validated JSON value, and the names of the fields that its schema dropped. */
export interface Decoded {
  readonly value: unknown
  readonly ignored: readonly string[]
}

/**
 * Returns a decoder for a route's JSON bodies, or for the lines of its NDJSON bodies. The decoder throws
 * `validation_error`, or the error code that a schema issue specifies.
 */
export function decoder({ schema }: Pick<Body, 'schema'>): (bytes: Buffer) => Decoded {
  const findIgnored = ignoredFields(schema)
  return bytes => {
    const sent = parseJson(bytes)
    return { value: validate(schema, sent), ignored: findIgnored(sent) }
  }
}
