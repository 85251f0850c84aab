import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { compilePolicy, toFilter } from '../../../src/access/policy/compile.ts'
import { documentMatcher } from '../../../src/access/policy/document-fields.ts'
import { documentTags } from '../../../src/access/policy/document-tags.ts'
import { parsePolicy } from '../../../src/access/policy/parse.ts'
import { openEmbeddedStore } from '../../../src/storage/open.ts'
import type { Write } from '../../../src/storage/rows.ts'
import { type DocumentRow, type JobRow, tables } from '../../../src/storage/tables.ts'
import type { Visibility } from '../../../src/storage/visibility.ts'
import { drawPolicy } from '../random-policies.ts'

type Facts = Pick<DocumentRow, 'metadata' | 'visibleTo' | 'ownerPrincipalId'>

const at = '2030-01-01T00:00:00.000Z'
const names = ['*', 'ada', 'bob', "o'neil", 'é', '\ud800', 'a\0b', 'x'.repeat(300)]
const key = { workspaceId: 'w', knowledgeBaseId: 'k' }
const documentsOfBase = { index: 'byKnowledgeBase', prefix: ['w', 'k'], limit: 1_000 }

function documentOf(documentId: string, facts: Facts): DocumentRow {
  return {
    ...key,
    documentId,
    sourceDocId: null,
    sourceFilename: null,
    fileType: null,
    fileSize: null,
    contentHash: null,
    chunkTotal: null,
    ingestedAt: null,
    updatedAt: at,
    createdAt: at,
    status: 'ready',
    errorMessage: null,
    ingestKey: null,
    nameKey: null,
    ...facts,
  }
}

function jobOf(documentId: string): JobRow {
  const unset = {
    errorMessage: null,
    leaseOwner: null,
    leaseUntil: null,
    endedAt: null,
    total: null,
    result: null,
  }
  const job = { ...key, ...unset, jobId: `job of ${documentId}`, documentId, createdAt: at, updatedAt: at }
  return { ...job, kind: 'ingest', status: 'pending', processed: 0 }
}

const value = fc.oneof(
  fc.constantFrom<string | number | boolean | null>('red', 'blue', '3', 'true', 'null', true, false, null),
  fc.constantFrom(0, -0, 1, 3, 2.5, 1e21, 2 ** 53, -4),
  fc.constantFrom(...names),
)
const facts: fc.Arbitrary<Facts> = fc.record({
  metadata: fc.oneof(
    fc.dictionary(fc.constantFrom('team', 'level', 'open', 'not a column', 'ünicode'), value),
    fc
      .record({ team: value, level: value })
      .map(last => ({ ...Object.fromEntries(Array.from({ length: 120 }, (_, n) => [`k${n}`, n])), ...last })),
  ),
  visibleTo: fc.option(fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 3 })),
  ownerPrincipalId: fc.option(fc.constantFrom(...names)),
})
const principal = fc.record({
  id: fc.option(fc.constantFrom(...names)),
  attributes: fc.dictionary(
    fc.constantFrom('team', 'admin'),
    fc.constantFrom('red', 'blue', 'true', ...names),
  ),
})
const policy = fc.infiniteStream(fc.nat(1_000)).map(numbers => {
  const below = (limit: number) => Number(numbers.next().value) % limit
  return drawPolicy({
    below,
    chance: share => below(1_000) < share * 1_000,
    pick: list => list[below(list.length)]!,
  })
})

async function openRows() {
  const { rows, close } = await openEmbeddedStore({ path: ':memory:' })
  onTestFinished(close)
  return rows
}

test('each document that a policy shows has one of its tags, and its jobs, too, after any changes', async () => {
  let policiesWithTags = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(facts, { minLength: 1, maxLength: 8 }),
      fc.array(fc.tuple(fc.nat(7), fc.option(facts)), { maxLength: 4 }),
      fc.array(fc.tuple(policy, principal), { minLength: 5, maxLength: 10 }),
      async (created, changes, viewers) => {
        const rows = await openRows()
        const insertions = created.flatMap((each, n): Write[] => [
          { op: 'insert', table: tables.jobs, row: jobOf(`d${n}`) },
          { op: 'insert', table: tables.documents, row: documentOf(`d${n}`, each) },
          { op: 'insert', table: tables.jobs, row: { ...jobOf(`d${n}`), jobId: `second job of d${n}` } },
        ])
        expect(await rows.atomic(insertions)).toEqual({ ok: true })
        for (const [n, after] of changes)
          await rows.atomic([
            after
              ? { op: 'replace', table: tables.documents, row: documentOf(`d${n}`, after) }
              : { op: 'delete', table: tables.documents, key: ['w', 'k', `d${n}`] },
          ])
        const documents = await rows.list(tables.documents, documentsOfBase)
        const jobs = await rows.list(tables.jobs, { ...documentsOfBase, descending: true })
        for (const [dsl, viewer] of viewers) {
          const visibility = { filter: toFilter(compilePolicy(parsePolicy(dsl), viewer)) } as Visibility
          const isVisible = documentMatcher(visibility)
          const tags = documentTags('k', visibility)
          if (!tags) continue
          policiesWithTags++
          const visible = documents.filter(({ row }) => isVisible(row))
          const tagged = await rows.list(tables.documents, { ...documentsOfBase, tags })
          expect(
            tagged.filter(({ row }) => isVisible(row)),
            dsl,
          ).toEqual(visible)
          for (const stored of visible)
            expect(await rows.get(tables.documents, ['w', 'k', stored.row.documentId], tags)).toEqual(stored)
          const ids = new Set(visible.map(({ row }) => row.documentId))
          const taggedJobs = await rows.list(tables.jobs, { ...documentsOfBase, tags, descending: true })
          expect(
            taggedJobs.filter(({ row }) => ids.has(row.documentId!)),
            dsl,
          ).toEqual(jobs.filter(({ row }) => ids.has(row.documentId!)))
        }
      },
    ),
    { numRuns: 60 },
  )
  expect(policiesWithTags).toBeGreaterThan(50)
})

test.each([
  [
    "'*' = ANY(visible_to) OR current_principal_id() = ANY(visible_to)",
    ['k/visible_to=*', 'k/visible_to=ada'],
  ],
  ['owner_id = current_principal_id()', ['k/$owner=ada']],
  ["team = $principal.team AND NOT (state = 'draft')", ['k/team=red', 'k/*']],
  ['level IN (1, 2)', ['k/level=1', 'k/*', 'k/level=2']],
  ["$principal.team = 'blue'", []],
  ["NOT (team = 'red')", undefined],
  ['level >= 3', undefined],
  ["team = 'red' OR level >= 3", undefined],
  ["status = 'ready'", undefined],
])('tags of %s', (dsl, tags) => {
  const compiled = compilePolicy(parsePolicy(dsl), { id: 'ada', attributes: { team: 'red' } })
  expect(documentTags('k', { filter: toFilter(compiled) } as Visibility)).toEqual(tags)
})
