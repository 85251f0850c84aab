import { expect, test } from 'vitest'
import { z } from 'zod'
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
