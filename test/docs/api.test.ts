import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { apiDoc } from '../../scripts/write-api-doc.ts'

test('docs/api.md matches the declared routes', () => {
  expect(readFileSync('docs/api.md', 'utf8'), 'run: npx tsx scripts/write-api-doc.ts').toBe(apiDoc())
})
