import type { Body } from '../contract/route.ts'
import { ignoredFields } from './ignored.ts'
import { parseJson } from './json.ts'
import { validate } from './validate.ts'

/** A validated JSON value, and the fields that its schema dropped. */
export interface Decoded {
  readonly value: unknown
  readonly ignored: readonly string[]
}

/**
 * Prepares the decoding of a route's JSON bodies, or of the lines of its NDJSON bodies.
 *
 * @returns a function that throws `validation_error`, or what an issue of the schema names
 */
export function decoder({ schema }: Pick<Body, 'schema'>): (bytes: Buffer) => Decoded {
  const findIgnored = ignoredFields(schema)
  return bytes => {
    const sent = parseJson(bytes)
    return { value: validate(schema, sent), ignored: findIgnored(sent) }
  }
}
