import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { requirementsIn } from '../../scripts/write-requirements-doc.ts'
import { brokenLinks, outsideReferences, unknownIds } from './references.ts'

const requirements = requirementsIn(readFileSync('docs/requirements.md', 'utf8')).map(({ id }) => id)
const rules = readFileSync('docs/security.md', 'utf8').match(/^### Rule \d+$/gm)!

test('every requirement and every security rule that is cited exists', () => {
  expect(unknownIds(requirements, rules.length)).toEqual([])
})

test('every page, link and anchor that is named exists', () => {
  expect(brokenLinks()).toEqual([])
})

test('no document outside the repository is cited', () => {
  expect(outsideReferences()).toEqual([])
})
