import fc from 'fast-check'
import { expect, test } from 'vitest'
import { findPostingFaults, indexedRecords } from '../../../src/storage/sqlite/postings/check-postings.ts'
import { findActivePostingIndex } from '../../../src/storage/sqlite/postings/index-rows.ts'
import type { VisibleRecords } from '../../../src/storage/sqlite/postings/record-masks.ts'
import { scratchPath } from '../scratch.ts'
import { countTerms, ReferenceIndex } from './reference.ts'
import { expectBest } from './stage.ts'
import { createStage, index, openStage, type Stage } from './stage-connection.ts'

const terms = [
  'a',
  'ab',
  'abc',
  'b',
  'é',
  '中',
  '\u{1f600}',
  '\uffee',
  'zz',
  'x'.repeat(250),
  'x'.repeat(251),
]
const term = fc.constantFrom(...terms)
const words = fc.array(term, { maxLength: 12 }).map(countTerms)
const passage = fc.record({
  gap: fc.integer({ min: 1, max: 4 }),
  title: fc.array(term, { maxLength: 3 }).map(countTerms),
  text: words,
})
const picks = fc.array(fc.nat(), { maxLength: 6, size: 'max' })
const change = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('add' as const),
      passages: fc.array(passage, { minLength: 1, maxLength: 5 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('remove' as const), picks }) },
  {
    weight: 5,
    arbitrary: fc.record({ op: fc.constant('merge' as const), steps: fc.integer({ min: 1, max: 9 }) }),
  },
  { weight: 2, arbitrary: fc.constant({ op: 'rollback' as const }) },
  { weight: 1, arbitrary: fc.constant({ op: 'reopen' as const }) },
)
const query = fc.record({
  words: fc.array(
    fc.record({
      terms: fc.array(term, { minLength: 1, maxLength: 3 }),
      weight: fc.constantFrom(1, 0.5, 2.25),
    }),
    { minLength: 1, maxLength: 4 },
  ),
  required: fc.option(
    fc.array(fc.array(term, { minLength: 1, maxLength: 2 }), { minLength: 1, maxLength: 3 }),
    {
      nil: undefined,
    },
  ),
  limit: fc.integer({ min: 0, max: 12 }),
  records: fc.option(fc.uniqueArray(fc.nat(60), { maxLength: 30 }), { nil: undefined }),
})
const scenario = fc.array(fc.tuple(change, query), { minLength: 1, maxLength: 70, size: 'max' })

function visibleRecordsOf(
  { records }: { records: number[] | undefined },
  version: number,
): VisibleRecords | undefined {
  const sorted = records && [...records].sort((a, b) => a - b)
  return sorted && { key: JSON.stringify([sorted, version]), read: () => sorted }
}

/** A store on disk with two connections, and the same records in memory. */
class Comparison {
  readonly #path: string
  readonly reference = new ReferenceIndex()
  #stage: Stage
  #other: Stage
  #last = 0
  #version = 0

  constructor(path: string) {
    this.#path = path
    this.#stage = createStage(path)
    this.#other = openStage(path, 'other')
  }

  close(): void {
    this.#stage.connection.close()
    this.#other.connection.close()
  }

  apply(next: typeof change extends fc.Arbitrary<infer T> ? T : never): void {
    const { writer, write, merge } = this.#stage
    this.#version++
    switch (next.op) {
      case 'add': {
        const records = next.passages.map(({ gap, ...passage }) => {
          this.#last += gap
          return { record: this.#last, ...passage }
        })
        write(() => writer.add(index, records))
        this.reference.add(records)
        break
      }
      case 'remove': {
        const records = this.#picked(next.picks)
        const present = new Set(records.filter(record => this.reference.records.has(record)))
        expect(write(() => writer.remove(index, records))).toBe(present.size)
        this.reference.remove(records)
        break
      }
      case 'merge':
        merge(next.steps)
        break
      case 'rollback':
        this.#rollBack()
        break
      case 'reopen':
        this.close()
        this.#stage = openStage(this.#path)
        this.#other = openStage(this.#path, 'other')
    }
  }

  /** Changes everything and merges, in a transaction that is rolled back. */
  #rollBack(): void {
    const { writer, connection, merger } = this.#stage
    connection.prepare('BEGIN IMMEDIATE').run()
    const records = [1, 2, 3].map(n => ({
      record: this.#last + n,
      title: countTerms(['a']),
      text: countTerms(['ab']),
    }))
    merger.step(0)
    writer.add(index, records)
    writer.remove(index, [...this.reference.records.keys()])
    merger.step(0)
    connection.rollback()
  }

  #picked(numbers: readonly number[]): number[] {
    return numbers.map(n => n % (this.#last + 3))
  }

  check(asked: typeof query extends fc.Arbitrary<infer T> ? T : never): void {
    const visible = visibleRecordsOf(asked, this.#version)
    const { required } = asked
    const words = asked.words.map(({ terms, weight }) => ({ terms: [...new Set(terms)], weight }))
    const all = this.reference.search(words, visible)
    const everything = required ? all.filter(({ record }) => this.#contains(record, required)) : all
    for (const { reader } of [this.#stage, this.#other]) {
      const found = reader.search(index.collection, { ...asked, words, visible })
      expectBest(found, everything, asked.limit)
      this.#checkOccurrences(reader, asked, visible)
    }
  }

  #contains(record: number, required: readonly (readonly string[])[]): boolean {
    const { title, text } = this.reference.records.get(record)!
    return required.every(list => list.some(term => title.has(term) || text.has(term)))
  }

  #checkOccurrences(
    reader: Stage['reader'],
    asked: typeof query extends fc.Arbitrary<infer T> ? T : never,
    visible: VisibleRecords | undefined,
  ): void {
    const records = this.reference.visible(visible)
    const among = Array.from({ length: this.#last + 2 }, (_, record) => record)
    const terms = asked.words.flatMap(each => each.terms)
    const groups = [...terms.map(term => [[term]]), [], [terms], terms.map(term => [term, terms[0]!])]
    const counted = reader.occurrences(index.collection, { groups, among, visible })
    const expected = groups.map(group => {
      const matching = records.filter(
        ({ title, text }) =>
          group.length > 0 && group.every(list => list.some(term => title.has(term) || text.has(term))),
      )
      return { records: matching.length, among: matching.map(({ record }) => record) }
    })
    expect(counted).toEqual({ records: records.length, groups: expected })
  }

  checkStore(): void {
    const { connection, merge } = this.#stage
    const before = findPostingFaults(connection)
    merge()
    expect([...before, ...findPostingFaults(connection)]).toEqual([])
    const { id } = findActivePostingIndex(connection, index.collection)!
    expect([...indexedRecords(connection, id)]).toEqual([...this.reference.records.keys()])
    expect(connection.prepare('SELECT count(*) AS n FROM posting_segment WHERE state <> 1').get()).toEqual({
      n: 0,
    })
  }
}

test('ranks like the formula, whatever was added, deleted, merged, rolled back or reopened', () => {
  fc.assert(
    fc.property(scenario, steps => {
      const comparison = new Comparison(scratchPath())
      try {
        for (const [next, asked] of steps) {
          comparison.apply(next)
          comparison.check(asked)
        }
        comparison.checkStore()
        for (const [, asked] of steps) comparison.check(asked)
      } finally {
        comparison.close()
      }
    }),
    { numRuns: Number(process.env.WB_TEST_RUNS ?? 20), endOnFailure: true },
  )
})
