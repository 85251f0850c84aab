import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { apiDoc } from '../../scripts/write-api-doc.ts'

test('docs/api.md is what the routes declare', () => {
  expect(readFileSync('docs/api.md', 'utf8'), 'run: npx tsx scripts/write-api-doc.ts').toBe(apiDoc())
})
