import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { errorsDoc } from '../../scripts/write-errors-doc.ts'
import { errorCodes, errorDocs, errorRegistry } from '../../src/contract/errors.ts'

test('S7.1-06 S9-02: codes and their statuses do not change', async () => {
  const statuses = Object.fromEntries(errorCodes.map(code => [code, errorRegistry[code].status]))
  await expect(`${JSON.stringify(statuses, null, 2)}\n`).toMatchFileSnapshot('./errors.snap.json')
})

test.each(errorCodes)('S7.1-02: %s has a hint that suggests an action', code => {
  expect(errorRegistry[code].hint).toMatch(/^[A-Z].*\.$/)
})

test('S7.1-03: docs/errors.md matches the registry, with an anchor for every code', () => {
  const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8')
  expect(page, 'run: npx tsx scripts/write-errors-doc.ts').toBe(errorsDoc())
  for (const code of errorCodes) expect(page).toContain(`\n## ${errorDocs(code).split('#')[1]}\n`)
})
