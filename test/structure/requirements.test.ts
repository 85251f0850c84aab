import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import {
  findCitations,
  isPlanned,
  requirementsDoc,
  requirementsIn,
} from '../../scripts/write-requirements-doc.ts'

const page = readFileSync('docs/requirements.md', 'utf8')
const requirements = requirementsIn(page)
const ids = requirements.map(({ id }) => id)
const citations = findCitations(requirements)

test('docs/requirements.md links to the tests that cite each requirement', () => {
  expect(page, 'run: npx tsx scripts/write-requirements-doc.ts').toBe(requirementsDoc(page, citations))
})

test('every row of docs/requirements.md is parsed, and no ID occurs twice', () => {
  expect(requirements.length).toBe(page.match(/<a id=/g)!.length)
  expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([])
})

test('tests cite only requirements of docs/requirements.md', () => {
  const unknown = [...citations].filter(([id]) => !ids.includes(id))
  expect(unknown.map(([id, files]) => `${id} in ${[...files].join(', ')}`)).toEqual([])
})

test('every requirement is cited by a test, except those of planned features', () => {
  const unproven = requirements.filter(
    requirement => !isPlanned(requirement) && !citations.has(requirement.id),
  )
  const built = requirements.filter(requirement => isPlanned(requirement) && citations.has(requirement.id))
  expect({ unproven: unproven.map(({ id }) => id), built: built.map(({ id }) => id) }).toEqual({
    unproven: [],
    built: [],
  })
})
