import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { findPostingFaults, indexedRecords } from '../../../src/storage/sqlite/postings/check-postings.ts'
import { findActivePostingIndex } from '../../../src/storage/sqlite/postings/index-rows.ts'
import { programPath } from '../../harness/program.ts'
import { scratchPath } from '../scratch.ts'
import { changeOf, recordsOf } from './changes.ts'
import { ReferenceIndex } from './reference.ts'
import { allRecords, expectBest, wordsOf } from './stage.ts'
import { createStage, index, openStage, type Stage } from './stage-connection.ts'

const ROUNDS = Number(process.env.WB_TEST_KILLS ?? 20)
const KILL_WITHIN_MS = 120
/** More than the duration of a lease, so that each process can continue the merges of the killed one. */
const ROUND_MS = 60_000

/** Runs a writer, kills it, and returns its last output line. */
async function killWriter(path: string, first: number, round: number): Promise<string> {
  const args = [programPath('postings/writer'), path, String(first), String(round * ROUND_MS)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', (bytes: Buffer) => {
    output += bytes.toString()
  })
  await once(child.stdout, 'data')
  await new Promise(resolve => setTimeout(resolve, ((round * 7_919) % 101) * (KILL_WITHIN_MS / 100)))
  child.kill('SIGKILL')
  const [, signal] = await once(child, 'close')
  expect(signal).toBe('SIGKILL')
  return output.trimEnd().split('\n').at(-1)!
}

function apply(reference: ReferenceIndex, n: number): void {
  const change = changeOf(n)
  if (change.op === 'add') reference.add(recordsOf(change))
  else reference.remove(change.records)
}

function contentOf(reference: ReferenceIndex): number[] {
  return [...reference.records.keys()]
}

function storedContent({ reader, connection }: Stage): number[] {
  const among = [...indexedRecords(connection, findActivePostingIndex(connection, index.collection)!.id)]
  const asked = { groups: [[['title']]], among, visible: allRecords }
  return [...reader.occurrences(index.collection, asked).groups[0]!.among]
}

test(`a store is sound after each of ${ROUNDS} kills in the middle of merges`, {
  timeout: 60_000 + 15_000 * ROUNDS,
}, async () => {
  const path = scratchPath()
  createStage(path).connection.close()
  const reference = new ReferenceIndex()
  let applied = 0
  let killsDuringMerge = 0
  for (let round = 1; round <= ROUNDS; round++) {
    const [state, number] = (await killWriter(path, applied, round)).split(' ')
    const last = Number(number)
    for (; applied < last; applied++) apply(reference, applied)
    const stage = openStage(path)
    const { unfinished } = stage.connection
      .prepare<{ unfinished: number }>('SELECT count(*) AS unfinished FROM posting_segment WHERE state = 0')
      .get()!
    if (unfinished > 0) killsDuringMerge++
    const stored = storedContent(stage)
    // The last change was committed if it was acknowledged, else it may have been.
    const before = contentOf(reference)
    apply(reference, applied++)
    if (state === 'begin' && JSON.stringify(stored) === JSON.stringify(before)) {
      applied--
      reference.records.clear()
      for (let n = 0; n < applied; n++) apply(reference, n)
    }
    expect(stored).toEqual(contentOf(reference))
    expect(findPostingFaults(stage.connection)).toEqual([])
    for (const words of [wordsOf('w1', 'w20'), wordsOf('title', `w${round}`)]) {
      const found = stage.reader.search(index.collection, { words, limit: 10, visible: allRecords })
      expectBest(found, reference.search(words, allRecords), 10)
    }
    stage.connection.close()
  }
  expect(killsDuringMerge).toBeGreaterThan(0)
  const stage = openStage(path)
  const now = (ROUNDS + 1) * ROUND_MS
  while (stage.write(() => stage.merger.step(now)));
  expect(storedContent(stage)).toEqual(contentOf(reference))
  expect(findPostingFaults(stage.connection)).toEqual([])
  const states = stage.connection.prepare('SELECT DISTINCT state FROM posting_segment').all()
  expect(states).toEqual([{ state: 1 }])
  stage.connection.close()
})
