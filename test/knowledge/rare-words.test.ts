import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { terms } from '../../src/base/words.ts'
import { kb, type SearchRequest } from '../../src/contract/knowledge.ts'
import { records } from '../../src/contract/records.ts'
import { type Base, makeBase, makeMockService, makeWorkspace } from '../harness/resources.ts'
import { open, type TestRuntime } from '../harness/runtime.ts'

/** With 256 passages or more, the fit ignores terms of a single passage. */
const largeBase = { minLength: 256, maxLength: 280 }
const smallBase = { minLength: 1, maxLength: 40 }
const wordsAsked = 2

const common = 'wing tail rotor shock layers plate cone flow heated drag lifting café Strömung поток'.split(
  ' ',
)
const rare = ['penguins', 'x1', 'naïveté', 'пингвин', '42', 'Zeppelin']

interface Collection {
  readonly texts: readonly string[]
  /** A word that occurs in one passage only. */
  readonly word: string
}

/** Passages of common words, one of which also contains a rare word. */
function collectionsOf(length: { minLength: number; maxLength: number }): fc.Arbitrary<Collection> {
  const passage = fc.array(fc.constantFrom(...common), { minLength: 1, maxLength: 10 })
  return fc
    .record({ passages: fc.array(passage, length), word: fc.constantFrom(...rare), at: fc.nat() })
    .map(({ passages, word, at }) => {
      const texts = passages.map(words => words.join(' '))
      texts[at % texts.length] += ` ${word}`
      return { texts, word }
    })
}
const collection = fc.oneof(
  { weight: 2, arbitrary: collectionsOf(smallBase) },
  { weight: 1, arbitrary: collectionsOf(largeBase) },
)

/** Words that occur in one passage only, each with the ID of the passage. */
function singlesIn({ texts, word }: Collection): [word: string, id: string][] {
  const holders = new Map<string, string[]>()
  for (const [at, text] of texts.entries())
    for (const one of new Set(text.split(' '))) holders.set(one, [...(holders.get(one) ?? []), `${at}`])
  const singles = [...holders].flatMap(([one, [id, ...others]]): [string, string][] =>
    id !== undefined && others.length === 0 ? [[one, id]] : [],
  )
  return [...singles.filter(([one]) => one === word), ...singles].slice(0, wordsAsked)
}

async function store(wb: TestRuntime, { params }: Base, texts: readonly string[], from = 0): Promise<void> {
  const body = { records: texts.map((text, at) => ({ id: `${from + at}`, text, payload: { half: at % 2 } })) }
  await wb.call(records.upsert, { params, body })
}

const spaces = ['fitted', 'placeholder', 'mock'] as const
type SpaceKind = (typeof spaces)[number]

/** Creates knowledge bases of one kind in a workspace. */
async function makerOf(wb: TestRuntime) {
  const { workspaceId } = await makeWorkspace(wb)
  const { embeddingServiceId } = await makeMockService(wb, workspaceId, { embeddingDimension: 16 })
  return async (kind: SpaceKind, texts: readonly string[]): Promise<Base> => {
    const service = kind === 'mock' ? { embeddingServiceId } : {}
    const base = await makeBase(wb, { workspaceId, ...service })
    await store(wb, base, texts)
    if (kind === 'fitted') await wb.settle()
    return base
  }
}

async function expectFirst(
  base: Base,
  [word, id]: [string, string],
  fields: Partial<Omit<SearchRequest, 'vector'>>,
): Promise<void> {
  const [first] = await base.search(word, { topK: 10, ...fields })
  expect(first?.id, `${word} ${JSON.stringify(fields)}`).toBe(id)
}

describe('a word that occurs in one passage', () => {
  test.each(spaces)('ranks that passage first in hybrid search, in a %s space', async kind => {
    const wb = await open()
    const make = await makerOf(wb)
    await fc.assert(
      fc.asyncProperty(collection, async held => {
        const base = await make(kind, held.texts)
        const singles = singlesIn(held)
        for (const single of singles) {
          const half = Number(single[1]) % 2
          const variants = [
            {},
            { topK: 1 },
            { topK: 1_000 },
            { lexicalWeight: 0.5 },
            { rerank: true },
            { filter: { half } },
          ]
          for (const fields of variants) await expectFirst(base, single, fields)
        }
        // Passages without the word do not change the result, before and after the space is fitted to them.
        await store(wb, base, ['heated tail', 'a kite of paper', 'soup'], held.texts.length)
        for (const single of singles.filter(([word]) => word === held.word)) {
          await expectFirst(base, single, {})
          await wb.settle()
          await expectFirst(base, single, {})
        }
      }),
      { numRuns: 15, endOnFailure: true },
    )
  })

  test('ranks that passage first in a search of several knowledge bases', async () => {
    const wb = await open()
    const kinds = fc.constantFrom(...spaces)
    await fc.assert(
      fc.asyncProperty(
        collectionsOf(smallBase),
        collectionsOf(smallBase),
        kinds,
        kinds,
        async (held, other, a, b) => {
          const make = await makerOf(wb)
          const beside = await make(
            b,
            other.texts.map(text => text.replaceAll(other.word, 'soup')),
          )
          const base = await make(a, held.texts)
          const { workspaceId, knowledgeBaseId } = base.params
          const id = held.texts.findIndex(text => terms(text).includes(terms(held.word)[0]!))
          for (const fields of [{}, { topK: 1 }, { rerank: true }]) {
            const body = { text: held.word, ...fields }
            const [first] = await wb.call(kb.searchMany, { params: { workspaceId }, body })
            expect([first?.id, first?.knowledgeBaseId]).toEqual([`${id}`, knowledgeBaseId])
          }
          await beside.delete()
        },
      ),
      { numRuns: 15, endOnFailure: true },
    )
  })
})

describe('a word outside the vocabulary of the fitted space', () => {
  const texts = Array.from({ length: largeBase.minLength }, (_, n) =>
    [0, 1, 2, 3].map(at => common[(n * (at + 1) + at) % common.length]).join(' '),
  )
  const id = '200'
  const held = texts.with(Number(id), 'a colony of penguins was seen below the old tower by the sea')

  test('is searched lexically only, regardless of the weight', async () => {
    const make = await makerOf(await open())
    const base = await make('fitted', held)
    for (const fields of [{}, { lexicalWeight: 0.1 }, { rerank: true }])
      expect((await base.search('penguins', { topK: 10, ...fields })).map(hit => hit.id)).toEqual([id])
    expect(await base.search('ostriches')).toEqual([])
  })

  test('is not outweighed by words in the vocabulary', async () => {
    const make = await makerOf(await open())
    const base = await make('fitted', held)
    await expectFirst(base, ['penguins on the wing', id], {})
  })
})
