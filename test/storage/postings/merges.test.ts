import { expect, onTestFinished, test } from 'vitest'
import { findPostingFaults } from '../../../src/storage/sqlite/postings/check-postings.ts'
import {
  findActivePostingIndex,
  listPostingIndexes,
} from '../../../src/storage/sqlite/postings/index-rows.ts'
import { planCompaction, planMerge } from '../../../src/storage/sqlite/postings/merge-plan.ts'
import { PostingMerger } from '../../../src/storage/sqlite/postings/posting-merger.ts'
import { listLiveSegments } from '../../../src/storage/sqlite/postings/segment-rows.ts'
import { scratchPath } from '../scratch.ts'
import { allRecords, recordOf, stageForTest, wordsOf } from './stage.ts'
import { analysis, index, openStage, type Stage } from './stage-connection.ts'

const LEASE_MS = 30_000

/** Adds `count` segments of one record each, from record 1 on. */
function addSegments({ write, writer }: Stage, count: number, generation = 1): void {
  for (let record = 1; record <= count; record++)
    write(() =>
      writer.add({ ...index, generation }, [recordOf(record, `apple w${record} w${record % 7}`, 'pear')]),
    )
}

function search({ reader }: Stage, text = 'apple w3', limit = 1_000) {
  return reader.search(index.collection, { words: wordsOf(...text.split(' ')), limit, visible: allRecords })
}

function segmentsOf({ connection }: Stage) {
  return listLiveSegments(connection, findActivePostingIndex(connection, index.collection)!.id)
}

function rowCounts({ connection }: Stage): Record<string, number> {
  const tables = ['posting_index', 'posting_segment', 'posting_slots', 'posting_deletions', 'posting_block']
  const count = (table: string) =>
    connection.prepare<{ n: number }>(`SELECT count(*) AS n FROM ${table}`).get()!
  return Object.fromEntries(tables.map(table => [table, count(table).n]))
}

test('keeps deletions that happen between any two steps of a merge', () => {
  for (let steps = 1, isMerged = false; !isMerged; steps++) {
    const stage = stageForTest()
    addSegments(stage, 6)
    const hasMore = stage.merge(steps)
    isMerged = segmentsOf(stage).length === 1 && !hasMore
    stage.write(() => stage.writer.remove(index, [2]))
    const before = search(stage, 'apple')
    stage.merge()
    expect(segmentsOf(stage)).toHaveLength(1)
    expect(before.map(({ record }) => record)).toEqual([1, 3, 4, 5, 6])
    expect(search(stage, 'apple')).toEqual(before)
    expect(findPostingFaults(stage.connection)).toEqual([])
  }
})

test('stores zeros as the visibility classes that earlier versions read', () => {
  const stage = stageForTest()
  for (let first = 1; first < 5_000; first += 250)
    stage.write(() => {
      const records = Array.from({ length: 250 }, (_, at) => recordOf(first + at, 'apple'))
      stage.writer.add(index, records)
    })
  stage.merge()
  const pages = stage.connection
    .prepare<{ page: number; classes: Buffer }>(
      'SELECT page, classes FROM posting_classes ORDER BY segment, page',
    )
    .all()
  expect(pages).toEqual([
    { page: 0, classes: Buffer.alloc(4 * 4_096) },
    { page: 1, classes: Buffer.alloc(4 * (5_000 - 4_096)) },
  ])
})

test('returns identical scores before, during and after merges', () => {
  const stage = stageForTest()
  addSegments(stage, 100)
  const before = search(stage)
  expect(before).toHaveLength(100)
  while (stage.merge(1)) expect(search(stage)).toEqual(before)
  expect(segmentsOf(stage).length).toBeLessThan(12)
  expect(search(stage)).toEqual(before)
})

test('a reader in a transaction keeps its state while another connection merges and deletes segments', () => {
  const path = scratchPath()
  const stage = stageForTest(path)
  addSegments(stage, 12)
  const other = openStage(path, 'other')
  onTestFinished(() => other.connection.close())
  other.connection.prepare('BEGIN').run()
  const before = search(other, 'apple')
  stage.write(() => stage.writer.remove(index, [1, 2]))
  stage.merge()
  expect(search(other, 'apple w3 w5')).toHaveLength(before.length)
  other.connection.rollback()
  expect(search(other, 'apple w3 w5')).toEqual(search(stage, 'apple w3 w5'))
  expect(search(other, 'apple')).toHaveLength(10)
})

test('one merger at a time works on an index, and another continues after the lease ends', () => {
  const stage = stageForTest()
  addSegments(stage, 6)
  const before = search(stage)
  const other = new PostingMerger(stage.connection, 'other')
  const step = (merger: PostingMerger, now: number) => stage.write(() => merger.step(now))
  expect(step(stage.merger, 0)).toBe(true)
  expect(step(stage.merger, 1)).toBe(true)
  expect(step(other, LEASE_MS)).toBe(false)
  expect(step(other, 1 + LEASE_MS)).toBe(true)
  expect(step(other, 1 + LEASE_MS)).toBe(true)
  // The first merger finds that it no longer owns the merge, and changes nothing.
  expect(step(stage.merger, 2 + LEASE_MS)).toBe(true)
  while (step(other, 2 + LEASE_MS));
  expect(segmentsOf(stage)).toHaveLength(1)
  expect(search(stage)).toEqual(before)
  expect(findPostingFaults(stage.connection)).toEqual([])
  expect(rowCounts(stage)).toMatchObject({ posting_segment: 1, posting_slots: 1 })
})

test('a merge frees the rows of deleted records, and an index without records has no rows', () => {
  const stage = stageForTest()
  addSegments(stage, 12)
  stage.write(() => stage.writer.remove(index, [1, 2, 3, 4, 5, 6, 7, 8]))
  stage.merge()
  expect(segmentsOf(stage).reduce((slots, segment) => slots + segment.slots, 0)).toBe(4)
  stage.write(() => stage.writer.remove(index, [9, 10, 11, 12]))
  stage.merge()
  expect(rowCounts(stage)).toEqual({
    posting_index: 1,
    posting_segment: 0,
    posting_slots: 0,
    posting_deletions: 0,
    posting_block: 0,
  })
  expect(search(stage)).toEqual([])
})

/** Runs all steps of a compaction; returns the outcome of the last one. */
function compact(stage: Stage, merger = stage.merger, now = 0) {
  const { id, lastRecord } = findActivePostingIndex(stage.connection, index.collection)!
  for (let range = { after: 0, through: lastRecord }; ; ) {
    const { outcome, ...left } = stage.write(() => merger.compact(id, range, now))
    if (outcome !== 'progressed') return outcome
    range = left
  }
}

test('a compaction leaves one segment without deleted records, and no other rows', () => {
  const stage = stageForTest()
  addSegments(stage, 40)
  stage.write(() => stage.writer.remove(index, [7, 8, 40]))
  const before = search(stage)
  expect(compact(stage)).toBe('done')
  expect(segmentsOf(stage)).toMatchObject([{ slots: 37, deleted: 0 }])
  expect(rowCounts(stage)).toMatchObject({ posting_segment: 1, posting_slots: 1, posting_deletions: 0 })
  expect(search(stage)).toEqual(before)
  expect(findPostingFaults(stage.connection)).toEqual([])
  const { version } = findActivePostingIndex(stage.connection, index.collection)!
  expect(compact(stage)).toBe('done')
  expect(findActivePostingIndex(stage.connection, index.collection)!.version).toBe(version)
})

test('a compaction keeps the changes between its steps, and ends although they continue', () => {
  const stage = stageForTest()
  addSegments(stage, 20)
  const { id, lastRecord } = findActivePostingIndex(stage.connection, index.collection)!
  let range = { after: 0, through: lastRecord }
  let record = lastRecord
  for (let isDone = false; !isDone; ) {
    const step = stage.write(() => stage.merger.compact(id, range, 0))
    range = step
    isDone = step.outcome === 'done'
    stage.write(() => stage.writer.add(index, [recordOf(++record, 'apple')]))
    if (record % 20 === 0) stage.write(() => stage.writer.remove(index, [record / 20]))
  }
  const removed = Array.from({ length: Math.floor(record / 20) }, (_, at) => at + 1).filter(n => n > 1)
  expect(search(stage, 'apple', 100_000)).toHaveLength(record - removed.length)
  expect(findPostingFaults(stage.connection)).toEqual([])
})

test('a compaction waits while another process merges the index', () => {
  const stage = stageForTest()
  addSegments(stage, 6)
  const other = new PostingMerger(stage.connection, 'other')
  stage.merge(2)
  expect(compact(stage, other, LEASE_MS - 1)).toBe('waiting')
  expect(compact(stage, other, LEASE_MS)).toBe('done')
  expect(segmentsOf(stage)).toHaveLength(1)
})

test('a compaction merges as many records into a segment as fit', () => {
  const sizes = [60_000, 5_000, 600, 300, 65_000, 100]
  const segments = sizes.map((slots, at) => ({
    id: at,
    stamp: 0,
    firstRecord: at * 100_000 + 1,
    lastRecord: at * 100_000 + slots,
    slots,
    deleted: 0,
    bytes: 0,
  }))
  const plans: number[][] = []
  for (let after = 0; ; ) {
    const plan = planCompaction(segments, { after, through: 500_000 })
    if (!plan) break
    plans.push(plan.map(({ slots }) => slots))
    after = plan.at(-1)!.lastRecord
  }
  expect(plans).toEqual([
    [60_000, 5_000],
    [600, 300],
  ])
  expect(planCompaction([{ ...segments[4]!, deleted: 1 }], { after: 0, through: 500_000 })).toHaveLength(1)
})

test('an activated generation replaces the old one in one step, and the old rows are deleted', () => {
  const path = scratchPath()
  const stage = stageForTest(path)
  addSegments(stage, 3)
  const next = { ...index, generation: 2 }
  stage.write(() => stage.writer.create(next, analysis))
  addSegments(stage, 5, 2)
  const other = openStage(path, 'other')
  onTestFinished(() => other.connection.close())
  expect(search(other)).toHaveLength(3)
  other.connection.prepare('BEGIN').run()
  expect(search(other)).toHaveLength(3)
  stage.write(() => stage.writer.activate(next))
  stage.merge()
  expect(search(other)).toHaveLength(3)
  other.connection.rollback()
  expect(search(other)).toHaveLength(5)
  expect(listPostingIndexes(stage.connection, index.collection)).toMatchObject([
    { generation: 2, lastRecord: 5 },
  ])
  expect(rowCounts(stage).posting_segment).toBe(segmentsOf(stage).length)
  stage.write(() => stage.writer.dropCollection(index.collection))
  expect(search(other)).toEqual([])
  stage.merge()
  expect(Object.values(rowCounts(stage))).toEqual([0, 0, 0, 0, 0])
})

test('a generation that is dropped during its merge ends the merge', () => {
  const stage = stageForTest()
  addSegments(stage, 6)
  stage.merge(3)
  stage.write(() => stage.writer.dropCollection(index.collection))
  stage.merge()
  expect(Object.values(rowCounts(stage))).toEqual([0, 0, 0, 0, 0])
})

test('keeps a million records in less than 50 segments, and rewrites each record less than 5 times', () => {
  let id = 0
  let segments: Parameters<typeof planMerge>[0] = []
  let [most, rewritten] = [0, 0]
  for (let record = 1; record < 1_000_000; ) {
    const slots = [256, 256, 256, 3, 100][id % 5]!
    const added = {
      id: ++id,
      stamp: 0,
      firstRecord: record,
      lastRecord: record + slots - 1,
      slots,
      deleted: 0,
      bytes: 0,
    }
    segments = [...segments, added]
    record += slots
    for (let plan = planMerge(segments); plan; plan = planMerge(segments)) {
      const at = segments.indexOf(plan[0]!)
      const merged = {
        ...plan[0]!,
        lastRecord: plan.at(-1)!.lastRecord,
        slots: plan.reduce((sum, segment) => sum + segment.slots, 0),
      }
      expect(merged.slots).toBeLessThanOrEqual(65_536)
      rewritten += merged.slots
      segments = segments.toSpliced(at, plan.length, merged)
    }
    most = Math.max(most, segments.length)
  }
  expect(most).toBeLessThan(50)
  expect(rewritten / 1_000_000).toBeLessThan(5)
})

test('leaves out segments that are larger than the limit of a fold', () => {
  const sizes = [60_000, 900, 900, 900, 300, 300, 300]
  const segments = sizes.map((slots, at) => {
    const record = at * 100_000
    return { id: at, stamp: 0, firstRecord: record, lastRecord: record + slots, slots, deleted: 0, bytes: 0 }
  })
  expect(planMerge(segments, 2_048)!.map(({ slots }) => slots)).toEqual([900, 900])
  expect(planMerge(segments.slice(0, 1), 2_048)).toBeUndefined()
})

test('never merges segments whose records are more than 32 bits apart', () => {
  const segments = Array.from({ length: 8 }, (_, at) => {
    const record = at * 1_000_000_000
    return { id: at, stamp: 0, firstRecord: record, lastRecord: record, slots: 1, deleted: 0, bytes: 0 }
  })
  const plan = planMerge(segments)!
  expect(plan.at(-1)!.lastRecord - plan[0]!.firstRecord).toBeLessThan(2 ** 32)
})
