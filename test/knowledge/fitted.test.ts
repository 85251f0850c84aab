import { describe, expect, test } from 'vitest'
import { documents } from '../../src/contract/documents.ts'
import { kb } from '../../src/contract/knowledge.ts'
import { records } from '../../src/contract/records.ts'
import {
  Gate,
  ingestSentences,
  readSpaceState,
  sentence,
  withFittedSpaces,
} from '../harness/fitted-spaces.ts'
import { type Base, baseIn, makeBase, makeMockService, makeWorkspace } from '../harness/resources.ts'
import { open, TestClock, type TestRuntime, waitUntil } from '../harness/runtime.ts'
import { storeFile } from '../harness/store-file.ts'

const quietMs = 2_000
const leaseMs = 30_000

/** A store in which a fit can be paused when it reads passages. */
function stoppable(stop: Gate) {
  return withFittedSpaces(spaces => ({
    async passages(...args) {
      await stop.pass()
      return spaces.passages(...args)
    },
  }))
}

/** A knowledge base with a space that was fitted to all its documents. */
async function fitted(wb: TestRuntime, count = 20): Promise<Base> {
  const base = await makeBase(wb)
  await ingestSentences(base, 0, count)
  await wb.settle()
  expect(readSpaceState(wb.dataDir, base)).toMatchObject({ records: count, unfitted: 0 })
  return base
}

/** Lets background work continue for many turns of the event loop. */
async function pause(wb: TestRuntime): Promise<void> {
  for (let turn = 0; turn < 200; turn++) await wb.send('GET /readyz')
}

const generationOf = (wb: TestRuntime, base: Base) => readSpaceState(wb.dataDir, base).generation
const stateOf = async (base: Base) => (await base.show()).embedder!.state

describe('states of a space', () => {
  test.each([
    ['on the spot', false],
    ['with threads', true],
  ])('a space is a placeholder until it is fitted, %s', async (_, threads) => {
    const wb = await open({ threads, server: true, clock: new TestClock() })
    const base = await makeBase(wb)
    await ingestSentences(base, 0, 9)
    expect((await base.show()).embedder).toEqual({
      version: 'placeholder',
      state: 'placeholder',
      fittedChunks: 0,
      chunks: 9,
    })
    expect(readSpaceState(wb.dataDir, base).generation).toBe(0)
    await ingestSentences(base, 9, 12)
    await waitUntil(async () => (await stateOf(base)) === 'ready')
    const { generation } = readSpaceState(wb.dataDir, base)
    expect(generation).toBeGreaterThan(0)
    expect((await base.show()).embedder).toMatchObject({ version: `lsa-${generation}`, chunks: 12 })
    expect(wb.loggedProblems).toEqual([])
  })

  test('a space is fitting during a fit, and searches still succeed', async () => {
    const stop = new Gate()
    const wb = await open({ server: true, clock: new TestClock(), content: stoppable(stop) })
    const base = await makeBase(wb)
    stop.close()
    await ingestSentences(base, 0, 12)
    await waitUntil(() => stop.reached > 0)
    expect((await base.show()).embedder).toMatchObject({ version: 'placeholder', state: 'fitting' })
    expect(await base.search('rotor')).not.toEqual([])
    stop.open()
    await waitUntil(async () => (await stateOf(base)) === 'ready')
  })

  test('fewer than ten chunks are not fitted', async () => {
    const clock = new TestClock()
    const wb = await open({ server: true, clock })
    const base = await makeBase(wb)
    await ingestSentences(base, 0, 9)
    clock.advance(quietMs)
    await wb.settle()
    expect(await wb.runtime.pending()).toBe(0)
    expect(generationOf(wb, base)).toBe(0)
  })
})

describe('new documents', () => {
  test('are folded into the current space and found by meaning', async () => {
    const wb = await open()
    const base = await fitted(wb, 40)
    const { document } = await base.ingest('A cone stalls under resonance.')
    expect(generationOf(wb, base)).toBe(1)
    expect((await base.show()).embedder).toMatchObject({ state: 'ready', fittedChunks: 40, chunks: 41 })
    const [best] = await base.search('cone stalls resonance', { hybrid: false })
    expect(best!.payload!.documentId).toBe(document.documentId)
  })

  /** Counts attempts to fit, each of which requires the lease. */
  function counted() {
    const count = { fits: 0 }
    const content = withFittedSpaces(spaces => ({
      lease(...args) {
        count.fits++
        return spaces.lease(...args)
      },
    }))
    return { count, content }
  }

  test('are fitted after two seconds without ingest', async () => {
    const clock = new TestClock()
    const { count, content } = counted()
    const wb = await open({ server: true, clock, content })
    const base = await fitted(wb, 40)
    const before = generationOf(wb, base)
    count.fits = 0
    await base.ingest(sentence(100))
    clock.advance(quietMs - 1)
    await base.ingest(sentence(101))
    clock.advance(quietMs - 1)
    await pause(wb)
    expect(count.fits).toBe(0)
    expect(readSpaceState(wb.dataDir, base)).toEqual({ generation: before, unfitted: 2, records: 42 })
    clock.advance(1)
    await waitUntil(() => generationOf(wb, base) === before + 1)
    expect(readSpaceState(wb.dataDir, base)).toMatchObject({ unfitted: 0 })
  })

  test('are fitted immediately if more than half of the chunks are unfitted', async () => {
    const { count, content } = counted()
    const wb = await open({ server: true, clock: new TestClock(), content })
    const base = await fitted(wb, 10)
    const before = generationOf(wb, base)
    count.fits = 0
    await ingestSentences(base, 100, 110)
    await pause(wb)
    expect(count.fits).toBe(0)
    expect(readSpaceState(wb.dataDir, base)).toEqual({ generation: before, unfitted: 10, records: 20 })
    await base.ingest(sentence(110))
    await waitUntil(() => generationOf(wb, base) === before + 1)
  })

  test('are fitted if a client stored them as records', async () => {
    const wb = await open({ server: true, clock: new TestClock() })
    const base = await makeBase(wb)
    const stored = Array.from({ length: 20 }, (_, n) => ({ id: `r${n}`, text: sentence(n) }))
    await wb.call(records.upsert, { params: base.params, body: { records: stored } })
    await waitUntil(() => generationOf(wb, base) === 1)
    expect(readSpaceState(wb.dataDir, base)).toMatchObject({ unfitted: 0, records: 20 })
  })

  test('do not prevent a fit from finishing when they arrive continuously', { timeout: 60_000 }, async () => {
    const wb = await open({ server: true, threads: true })
    const base = await makeBase(wb)
    await ingestSentences(base, 0, 9)
    let ingesting = true
    const stream = (async () => {
      for (let n = 1_000; ingesting; n += 8) await ingestSentences(base, n, n + 8)
    })()
    await waitUntil(async () => (await base.show()).embedder!.fittedChunks > 0)
    ingesting = false
    await stream
    await wb.settle()
    expect(readSpaceState(wb.dataDir, base)).toMatchObject({ unfitted: 0 })
    expect(wb.loggedProblems).toEqual([])
  })
})

describe('two runtimes on one data directory', () => {
  test('only one of them fits, and the other uses the new space immediately', async () => {
    const stop = new Gate()
    const mine = await open({ content: stoppable(stop) })
    const base = await makeBase(mine)
    await ingestSentences(base, 0, 30)
    const other = await open({ dataDir: mine.dataDir })
    const there = baseIn(other, { ...base.params, name: base.name })
    expect(await there.search('rotor flutters')).toEqual(await base.search('rotor flutters'))
    stop.close()
    const settling = mine.settle()
    await waitUntil(() => stop.reached > 0)
    await other.settle()
    expect(generationOf(mine, base)).toBe(0)
    stop.open()
    await settling
    expect(generationOf(mine, base)).toBe(1)
    expect(await stateOf(there)).toBe('ready')
    for (const hybrid of [true, false]) {
      const found = await there.search('rotor flutters', { hybrid })
      expect(found).toEqual(await base.search('rotor flutters', { hybrid }))
    }
    await ingestSentences(there, 30, 33)
    expect(readSpaceState(mine.dataDir, base)).toEqual({ generation: 1, unfitted: 3, records: 33 })
  })

  test('a document prepared in a replaced space is embedded again', async () => {
    let moves = 0
    const other: { wb?: TestRuntime } = {}
    const wb = await open({
      content: store => ({
        ...store,
        async write(changes, rows) {
          const isUpsert = changes.some(change => change.op === 'upsert')
          if (isUpsert && moves > 0 && moves-- > 0) await other.wb!.settle()
          return store.write(changes, rows)
        },
      }),
    })
    const base = await makeBase(wb)
    const { document } = await base.ingest(sentence(0), { metadata: { title: 'First' } })
    await ingestSentences(base, 1, 30)
    other.wb = await open({ dataDir: wb.dataDir })
    const late = async (write: () => Promise<unknown>) => {
      const before = generationOf(wb, base)
      moves = 1
      await write()
      expect(generationOf(wb, base)).toBe(before + 1)
    }
    const { params } = base
    await late(() => base.ingest('A late text about flutter.'))
    await late(() =>
      wb.call(records.upsert, { params, body: { records: [{ id: 'r', text: 'A late record.' }] } }),
    )
    await late(() =>
      wb.call(documents.update, {
        params: { ...params, documentId: document.documentId },
        body: { metadata: { title: 'Renamed' } },
      }),
    )
    expect(readSpaceState(wb.dataDir, base).records).toBe(32)
  })

  test.each([
    ['by vector', false],
    ['by vector and words, mixed as the new space is', true],
  ])('a query embedded in a replaced space is repeated: %s', async (_, hybrid) => {
    let moves = 0
    const other: { wb?: TestRuntime } = {}
    const wb = await open({
      content: store => ({
        ...store,
        async nearest(...args) {
          if (moves > 0 && moves-- > 0) await other.wb!.settle()
          return store.nearest(...args)
        },
      }),
    })
    const base = await makeBase(wb)
    await ingestSentences(base, 0, 30)
    other.wb = await open({ dataDir: wb.dataDir })
    moves = 1
    const found = await base.search('the jet bends', { hybrid })
    expect(generationOf(wb, base)).toBe(1)
    expect(found).toEqual(await base.search('the jet bends', { hybrid }))
  })

  test('two fits do not mix if one outlives its lease', async () => {
    const clock = new TestClock()
    const stop = new Gate()
    const slow = await open({
      clock,
      content: withFittedSpaces(spaces => ({
        async stage(...args) {
          await stop.pass()
          return spaces.stage(...args)
        },
      })),
    })
    const base = await makeBase(slow)
    await ingestSentences(base, 0, 30)
    const quick = await open({ clock, dataDir: slow.dataDir })
    stop.close()
    const settling = slow.settle()
    await waitUntil(() => stop.reached > 0)
    await baseIn(quick, { ...base.params, name: base.name }).ingest('One more makes another model of it.')
    clock.advance(leaseMs + 1)
    await quick.settle()
    expect(generationOf(slow, base)).toBe(1)
    stop.open()
    await settling
    expect(readSpaceState(slow.dataDir, base)).toEqual({ generation: 1, unfitted: 0, records: 31 })
  })

  test('vectors staged by a fit after it lost its lease are discarded', async () => {
    const clock = new TestClock()
    const [before, after] = [new Gate(), new Gate()]
    const slow = await open({
      clock,
      content: withFittedSpaces(spaces => ({
        async stage(...args) {
          await before.pass()
          return spaces.stage(...args)
        },
      })),
    })
    const base = await makeBase(slow)
    await ingestSentences(base, 0, 30)
    const quick = await open({
      clock,
      dataDir: slow.dataDir,
      content: withFittedSpaces(spaces => ({
        async unstaged(...args) {
          await after.pass()
          return spaces.unstaged(...args)
        },
      })),
    })
    before.close()
    after.close()
    const slowly = slow.settle()
    await waitUntil(() => before.reached > 0)
    await baseIn(quick, { ...base.params, name: base.name }).ingest('One more makes another model of it.')
    clock.advance(leaseMs + 1)
    const quickly = quick.settle()
    await waitUntil(() => after.reached > 0)
    before.open()
    await slowly
    after.open()
    await quickly
    expect(readSpaceState(slow.dataDir, base)).toEqual({ generation: 1, unfitted: 0, records: 31 })
  })
})

describe('an interrupted fit', () => {
  test('of a deleted knowledge base leaves no data', async () => {
    const stop = new Gate()
    const wb = await open({ content: stoppable(stop) })
    const base = await makeBase(wb)
    await ingestSentences(base, 0, 30)
    stop.close()
    const settling = wb.settle()
    await waitUntil(() => stop.reached > 0)
    await base.delete()
    stop.open()
    await settling
    const file = storeFile(wb.dataDir)
    expect(file.tables().filter(name => /^vec_/.test(name))).toEqual([])
    expect(file.all('SELECT * FROM collection')).toEqual([])
    expect(file.all('SELECT * FROM embedder_model')).toEqual([])
    expect(wb.loggedProblems).toEqual([])
  })

  test('adds nothing to a new knowledge base of the same name', async () => {
    const stop = new Gate()
    const wb = await open({
      content: withFittedSpaces(spaces => ({
        async unstaged(...args) {
          await stop.pass()
          return spaces.unstaged(...args)
        },
      })),
    })
    const { workspaceId } = await makeWorkspace(wb)
    const base = await makeBase(wb, { workspaceId, name: 'again' })
    await ingestSentences(base, 0, 30)
    stop.close()
    const settling = wb.settle()
    await waitUntil(() => stop.reached > 0)
    await base.delete()
    const second = await makeBase(wb, { workspaceId, name: 'again' })
    stop.open()
    await settling
    await ingestSentences(second, 50, 53)
    expect(readSpaceState(wb.dataDir, second)).toEqual({ generation: 0, unfitted: 3, records: 3 })
    expect(storeFile(wb.dataDir).collection(workspaceId, 'again')).toMatchObject({ lease_owner: null })
  })

  test('adds nothing to a new knowledge base of the same name when it renews its lease', async () => {
    const stop = new Gate()
    const wb = await open({
      content: withFittedSpaces(spaces => ({
        async renew(...args) {
          await stop.pass()
          return spaces.renew(...args)
        },
      })),
    })
    const { workspaceId } = await makeWorkspace(wb)
    const base = await makeBase(wb, { workspaceId, name: 'again' })
    await ingestSentences(base, 0, 30)
    stop.close()
    const settling = wb.settle()
    await waitUntil(() => stop.reached > 0)
    await base.delete()
    const second = await makeBase(wb, { workspaceId, name: 'again' })
    await ingestSentences(second, 50, 80)
    stop.open()
    await settling
    expect(readSpaceState(wb.dataDir, second)).toEqual({ generation: 0, unfitted: 30, records: 30 })
  })

  test('ends if every document is deleted', async () => {
    const stop = new Gate()
    const wb = await open({ content: stoppable(stop) })
    const base = await makeBase(wb)
    await ingestSentences(base, 0, 30)
    stop.close()
    const settling = wb.settle()
    await waitUntil(() => stop.reached > 0)
    const documentIds = (await base.documents()).map(({ documentId }) => documentId)
    await wb.call(documents.bulkDelete, { params: base.params, body: { documentIds } })
    stop.open()
    await settling
    expect(readSpaceState(wb.dataDir, base)).toMatchObject({ unfitted: 0, records: 0 })
  })

  test('is not retried continuously while another process has the lease', async () => {
    const clock = new TestClock()
    let asked = 0
    const counting = withFittedSpaces(spaces => ({
      lease(...args) {
        asked++
        return spaces.lease(...args)
      },
    }))
    const stop = new Gate()
    const busy = await open({ clock, content: stoppable(stop) })
    const base = await makeBase(busy)
    await ingestSentences(base, 0, 30)
    stop.close()
    const settling = busy.settle()
    await waitUntil(() => stop.reached > 0)
    const server = await open({ clock, server: true, dataDir: busy.dataDir, content: counting })
    const there = baseIn(server, { ...base.params, name: base.name })
    await ingestSentences(there, 30, 50)
    await pause(server)
    expect(asked).toBeLessThanOrEqual(3)
    stop.open()
    await settling
    for (let turn = 0; turn < 10 && readSpaceState(busy.dataDir, base).unfitted > 0; turn++) {
      clock.advance(60_000)
      await server.settle()
    }
    expect(readSpaceState(busy.dataDir, base)).toMatchObject({ unfitted: 0 })
  })

  test('after a store error is logged once and retried later', async () => {
    const clock = new TestClock()
    let faults = 0
    const wb = await open({
      clock,
      server: true,
      content: withFittedSpaces(spaces => ({
        async passages(...args) {
          if (faults++ < 1) throw new Error('the disk is gone')
          return spaces.passages(...args)
        },
      })),
    })
    const base = await makeBase(wb)
    await ingestSentences(base, 0, 30)
    await waitUntil(() => wb.loggedProblems.length > 0)
    await pause(wb)
    expect(wb.loggedProblems).toMatchObject([{ message: 'fit failed' }])
    expect(await stateOf(base)).toBe('placeholder')
    clock.advance(60_000)
    await waitUntil(async () => (await stateOf(base)) === 'ready')
  })
})

describe('shutdown and startup', () => {
  test.each(['passages', 'unstaged'] as const)(
    'close during a fit keeps the old space and no partial data: %s',
    async step => {
      const stop = new Gate()
      const wb = await open({
        content: withFittedSpaces(spaces => ({
          async [step](...args: never[]) {
            await stop.pass()
            return (spaces[step] as (...args: never[]) => Promise<never[]>)(...args)
          },
        })),
      })
      const base = await makeBase(wb)
      await ingestSentences(base, 0, 30)
      const found = await base.search('panel heats', { hybrid: false })
      stop.close()
      void wb.settle()
      await waitUntil(() => stop.reached > 0)
      const closing = wb.close()
      stop.open()
      await closing
      expect(readSpaceState(wb.dataDir, base)).toMatchObject({ generation: 0, records: 30 })
      const file = storeFile(wb.dataDir)
      expect(file.collection(base.params.workspaceId, base.name)).toMatchObject({
        staging: 0,
        lease_owner: null,
      })
      expect(file.tables().filter(name => name.startsWith('vec_'))).toHaveLength(1)
      const next = await open({ dataDir: wb.dataDir })
      const there = baseIn(next, { ...base.params, name: base.name })
      expect(await there.search('panel heats', { hybrid: false })).toEqual(found)
    },
  )

  test('a server fits at startup the documents that a command left unfitted', async () => {
    const command = await open()
    const base = await makeBase(command)
    await ingestSentences(base, 0, 30)
    expect(await command.runtime.pending()).toBe(1)
    await command.close()
    const server = await open({ dataDir: command.dataDir, server: true })
    const there = baseIn(server, { ...base.params, name: base.name })
    await waitUntil(async () => (await stateOf(there)) === 'ready')
    expect(await server.runtime.pending()).toBe(0)
  })

  test('a server takes over the fit of a killed process after the lease expires', async () => {
    const clock = new TestClock()
    const command = await open({ clock })
    const base = await makeBase(command)
    await ingestSentences(base, 0, 30)
    const killed = await open({
      clock,
      dataDir: command.dataDir,
      content: withFittedSpaces(spaces => ({
        async passages() {
          throw new Error('killed')
        },
        async release() {},
        lease: spaces.lease,
      })),
    })
    await killed.settle()
    const server = await open({ clock, dataDir: command.dataDir, server: true })
    const there = baseIn(server, { ...base.params, name: base.name })
    await server.settle()
    expect(await stateOf(there)).toBe('placeholder')
    await waitUntil(async () => {
      clock.advance(10_000)
      return (await stateOf(there)) === 'ready'
    })
  })

  test('a new knowledge base with a reused name has its own space', async () => {
    const wb = await open()
    const { workspaceId } = await makeWorkspace(wb)
    const first = await makeBase(wb, { workspaceId, name: 'again' })
    await ingestSentences(first, 0, 30)
    await wb.settle()
    await first.search('rotor', { hybrid: false })
    await first.delete()
    const second = await makeBase(wb, { workspaceId, name: 'again' })
    const texts = ['Soup of carrots.', 'Bread with butter.', 'Tea and honey.', 'Rice with beans.']
    for (const [n, text] of [...texts, ...texts, ...texts].entries())
      await second.ingest(`${text} Dish ${n}.`)
    await wb.settle()
    const fresh = await open({ dataDir: wb.dataDir })
    const there = baseIn(fresh, { ...second.params, name: 'again' })
    expect(await second.search('carrots', { hybrid: false })).toEqual(
      await there.search('carrots', { hybrid: false }),
    )
  })
})

describe('a space of another provider', () => {
  test.each([
    ['on the spot', false],
    ['with threads', true],
  ])('is never fitted, and its vectors are not replaced, %s', async (_, threads) => {
    const clock = new TestClock()
    const wb = await open({ server: true, threads, clock })
    const { workspaceId } = await makeWorkspace(wb)
    const { embeddingServiceId } = await makeMockService(wb, workspaceId, { embeddingDimension: 128 })
    const base = await makeBase(wb, { workspaceId, embeddingServiceId })
    const beside = await makeBase(wb, { workspaceId })
    await Promise.all([ingestSentences(base, 0, 30), ingestSentences(beside, 0, 30)])
    const before = storeFile(wb.dataDir).vectors(workspaceId, base.name)
    expect(before.size).toBe(30)
    clock.advance(quietMs)
    await waitUntil(async () => (await stateOf(beside)) === 'ready')
    await wb.settle()
    expect(await wb.runtime.pending()).toBe(0)
    const file = storeFile(wb.dataDir)
    expect(file.vectors(workspaceId, base.name)).toEqual(before)
    expect(file.collection(workspaceId, base.name)).toMatchObject({ generation: 0, fitted: 0 })
    expect(await base.show()).not.toHaveProperty('embedder')
    const again = await open({ dataDir: wb.dataDir })
    await again.settle()
    expect(storeFile(wb.dataDir).vectors(workspaceId, base.name)).toEqual(before)
    const vector = [1, ...Array<number>(127).fill(0)]
    expect(await wb.call(kb.search, { params: base.params, body: { vector, topK: 1 } })).toHaveLength(1)
  })
})
