import { expect, test } from 'vitest'
import { z } from 'zod'
import { createDecoder } from '../../src/http/decoder.ts'
import { validate } from '../../src/http/validate.ts'

const schema = z.object({ name: z.string(), records: z.array(z.object({ id: z.string() })) })

test.each([
  [{}, 'name: is required'],
  [{ name: 'a' }, 'records: is required'],
  [{ name: 'a', records: [{}] }, 'records.0.id: is required'],
  [{ name: 1 }, 'name: Invalid input: expected string, received number'],
])('S7.3-13: rejects %j with "%s"', (body, message) => {
  expect(() => validate(schema, body)).toThrow(message)
})

test.each(['null', '[]', '"a"', '1'])('S7.3-13: rejects the body %s, which is not an object', body => {
  expect(() => createDecoder({ schema })(Buffer.from(body))).toThrow('body: must be an object')
})
