import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { evaluatePolicy } from '../../src/access/policy/evaluate.ts'
import { parsePolicy } from '../../src/access/policy/parse.ts'
import { fullVisibility } from '../../src/access/row-access.ts'
import { randomNumbers } from '../../src/base/random-numbers.ts'
import { createPassageOperations } from '../../src/knowledge/passage-operations.ts'
import type { Collection, ContentStore, FitPassage } from '../../src/storage/content.ts'
import { withFittedSpaces } from '../harness/fitted-spaces.ts'
import { open, TestClock, type TestRuntime, waitUntil } from '../harness/runtime.ts'
import { hitsOf, type Send } from './principal-requests.ts'
import { type Draw, drawPolicy } from './random-policies.ts'
import { ingest, openRestrictedWorkspace } from './restricted-workspace.ts'

const vectorSearch = { text: 'secretword of wings', hybrid: false, topK: 50 }
const secrets = ['A secretword of wings.', 'Another secretword, with flow.']

async function scoresOf(send: Send, base: string, search: object): Promise<number[]> {
  const hits = hitsOf(await send(`POST ${base}/search`, search)) as unknown as { score: number }[]
  return hits.map(({ score }) => score)
}

async function ingestPublic(send: Send, base: string, metadata = {}) {
  for (let n = 0; n < 12; n++)
    await ingest(send, base, {
      text: `A public text about wings, flow and number${n}.`,
      visibleTo: ['*'],
      metadata,
    })
}

test('learns nothing from documents that a policy hides, even if they are visible to `*` [security rule 4]', async () => {
  const scoresWith = async (hidden: readonly string[]) => {
    const { wb, workspace, base, operator, as } = await openRestrictedWorkspace()
    await operator(`POST ${workspace}/principals`, { principalId: 'alice', attributes: { team: 'blue' } })
    const policy = { policyDsl: "team = $principal.team OR team = 'all'", policyEnabled: true }
    expect((await operator(`PATCH ${base}`, policy)).status).toBe(200)
    await ingestPublic(operator, base, { team: 'all' })
    for (const text of hidden)
      await ingest(operator, base, { text, visibleTo: ['*'], metadata: { team: 'red' } })
    await wb.settle()
    return scoresOf(as('alice'), base, vectorSearch)
  }
  const scores = await scoresWith([])
  expect(scores).toHaveLength(12)
  expect(await scoresWith(secrets)).toEqual(scores)
})

describe('forgets, before the next search,', () => {
  /** The change hides two documents that the embedder has learned. */
  const expectForgotten = async (
    hide: (
      ids: readonly string[],
      setup: Awaited<ReturnType<typeof openRestrictedWorkspace>>,
    ) => Promise<void>,
  ) => {
    const scoresWith = async (hidden: readonly string[]) => {
      const setup = await openRestrictedWorkspace()
      const { wb, base, operator, as } = setup
      await ingestPublic(operator, base, { team: 'all' })
      const ids: string[] = []
      for (const text of hidden)
        ids.push(await ingest(operator, base, { text, visibleTo: ['*'], metadata: { team: 'red' } }))
      await wb.settle()
      const learned = await scoresOf(as('alice'), base, vectorSearch)
      await hide(ids, setup)
      const forgotten = await scoresOf(as('alice'), base, vectorSearch)
      await wb.settle()
      return { learned, forgotten, fitted: await scoresOf(as('alice'), base, vectorSearch) }
    }
    const [withSecrets, without] = [await scoresWith(secrets), await scoresWith([])]
    expect(withSecrets.learned).not.toEqual(without.learned)
    expect(withSecrets.fitted).toEqual(without.fitted)
    return { withSecrets, without }
  }

  test('documents that an update hides', async () => {
    const { withSecrets, without } = await expectForgotten(async (ids, { base, operator }) => {
      for (const id of ids) {
        const patched = await operator(`PATCH ${base}/documents/${id}`, { visibleTo: ['bob'] })
        expect(patched.status).toBe(200)
      }
    })
    // Words rank until the next fit. Without a hidden document, no fit is due.
    expect(withSecrets.forgotten).toHaveLength(without.forgotten.length)
    expect(withSecrets.forgotten).not.toEqual(withSecrets.learned.slice(0, 12))
  })

  test('documents that a policy hides', async () => {
    const { withSecrets, without } = await expectForgotten(async (_ids, { base, operator }) => {
      const policy = { policyDsl: "team = 'all' OR $principal.admin = 'true'", policyEnabled: true }
      expect((await operator(`PATCH ${base}`, policy)).status).toBe(200)
    })
    expect(withSecrets.forgotten).toEqual(without.forgotten)
  })

  test('records that are stored again for fewer principals', async () => {
    const { wb, base, operator, as } = await openRestrictedWorkspace()
    await ingestPublic(operator, base)
    const store = (visibleTo: string[]) =>
      operator(`POST ${base}/records`, { records: [{ id: 'r', text: secrets[0], visibleTo }] })
    await store(['*'])
    await wb.settle()
    const learned = await scoresOf(as('alice'), base, vectorSearch)
    expect(await store(['bob'])).toMatchObject({ status: 200 })
    const answer = await as('alice')(`POST ${base}/search`, vectorSearch)
    expect(hitsOf(answer)).toHaveLength(12)
    expect(await scoresOf(as('alice'), base, vectorSearch)).not.toEqual(learned.slice(1))
  })

  test('nothing when documents change that it has not learned', async () => {
    const { wb, base, operator, as } = await openRestrictedWorkspace()
    await ingestPublic(operator, base)
    const id = await ingest(operator, base, { text: secrets[0], visibleTo: ['bob'] })
    await wb.settle()
    const before = await scoresOf(as('alice'), base, vectorSearch)
    await operator(`PATCH ${base}/documents/${id}`, { visibleTo: ['carol'] })
    expect(await scoresOf(as('alice'), base, vectorSearch)).toEqual(before)
  })
})

describe('is fitted at times that depend only on learnable documents [security rule 4]:', () => {
  const quietMs = 2_000

  /** A server whose embedder has learned 12 of 32 records. Counts the fits that start. */
  async function openFitted() {
    const clock = new TestClock()
    const count = { fits: 0 }
    const content = withFittedSpaces(spaces => ({
      lease(...args) {
        count.fits++
        return spaces.lease(...args)
      },
    }))
    const setup = await openRestrictedWorkspace({ server: true, clock, content })
    const { wb, base, as } = setup
    const [alice, bob] = [as('alice'), as('bob')]
    const store = async (send: Send, prefix: string, size: number, visibleTo: string[]) => {
      const texts = Array.from({ length: size }, (_, n) => ({
        id: `${prefix}${n}`,
        text: `A text about wings, flow and ${prefix} number${n}.`,
        visibleTo,
      }))
      expect((await send(`POST ${base}/records`, { records: texts })).status).toBe(200)
    }
    /** Lets background work continue for many turns of the event loop. */
    const pause = async () => {
      for (let turn = 0; turn < 50; turn++) await wb.send('GET /readyz')
    }
    const settleFits = async () => {
      await pause()
      clock.advance(60_000)
      await pause()
      await wb.settle()
      count.fits = 0
    }
    await store(bob, 'private', 20, ['bob'])
    await store(alice, 'first', 12, ['*'])
    await waitUntil(() => count.fits > 0)
    await settleFits()
    return { ...setup, alice, bob, clock, count, store, pause, settleFits }
  }

  test('hidden records start no fit', async () => {
    const { bob, clock, count, store, pause } = await openFitted()
    await store(bob, 'hidden', 40, ['bob'])
    clock.advance(quietMs)
    await pause()
    expect(count.fits).toBe(0)
  })

  test('hidden records do not postpone a fit', async () => {
    const { alice, bob, clock, count, store } = await openFitted()
    await store(alice, 'second', 1, ['*'])
    clock.advance(quietMs - 1)
    await store(bob, 'hidden', 1, ['bob'])
    expect(count.fits).toBe(0)
    clock.advance(1)
    await waitUntil(() => count.fits > 0)
  })

  test('a fit during growth does not wait for a share of hidden records', async () => {
    const { alice, bob, count, store, settleFits } = await openFitted()
    await store(bob, 'hidden', 100, ['bob'])
    await settleFits()
    await store(alice, 'second', 13, ['*'])
    await waitUntil(() => count.fits > 0)
  })

  test.each(['record', 'document'])(
    'a deleted %s that was learned is forgotten without other changes',
    async kind => {
      const { base, alice, bob, clock, count, store, pause, settleFits } = await openFitted()
      const id = await ingest(alice, base, { text: secrets[0]!, visibleTo: ['*'] })
      await settleFits()
      const path = kind === 'record' ? 'records/first0' : `documents/${id}`
      expect((await alice(`DELETE ${base}/${path}`)).status).toBeLessThan(300)
      clock.advance(quietMs)
      await waitUntil(() => count.fits > 0)
      await settleFits()
      await store(bob, 'hidden', 1, ['bob'])
      clock.advance(quietMs)
      await pause()
      expect(count.fits).toBe(0)
    },
  )
})

describe('row-level access is switched on', () => {
  /** Scores of alice after row-level access was off for a while, so that the embedder learned from all documents. */
  const scoresAfterSwitch = async (hidden: readonly string[], { isKilled }: { isKilled: boolean }) => {
    let calls = 0
    const options = {
      content: (store: ContentStore): ContentStore => ({
        ...store,
        fitted: store.fitted && {
          ...store.fitted,
          async invalidate(key) {
            // The process ends after the switch and before the second call.
            if (isKilled && ++calls > 1) throw new Error('killed')
            await store.fitted!.invalidate(key)
          },
        },
      }),
    }
    const wb = await open(options)
    const made = await wb.send('POST /api/v1/workspaces', { name: 'w', kind: 'local', rlacEnabled: true })
    const workspace = `/api/v1/workspaces/${made.body.workspaceId}`
    const created = await wb.send(`POST ${workspace}/knowledge-bases`, { name: 'kb' })
    const base = `${workspace}/knowledge-bases/${created.body.knowledgeBaseId}`
    await ingestPublic(wb.send, base)
    for (const text of hidden) await ingest(wb.send, base, { text, visibleTo: ['bob'] })
    await wb.send(`PATCH ${workspace}`, { rlacEnabled: false })
    await wb.settle()
    calls = 0
    await wb.send(`PATCH ${workspace}`, { rlacEnabled: true })
    expect((await wb.send(`GET ${workspace}`)).body.rlacEnabled).toBe(true)
    const scoresIn = async ({ send }: TestRuntime) =>
      scoresOf((line, json) => send(line, json, { 'x-view-as-principal': 'alice' }), base, vectorSearch)
    if (!isKilled) return scoresIn(wb)
    await wb.close()
    const again = await open({ dataDir: wb.dataDir })
    const beforeFit = await scoresIn(again)
    await again.settle()
    return [...beforeFit, ...(await scoresIn(again))]
  }

  test.each([{ isKilled: false }, { isKilled: true }])(
    'and the embedder forgets hidden documents at once, even if the process ends: $isKilled',
    async kill => {
      expect(await scoresAfterSwitch(secrets, kill)).toEqual(await scoresAfterSwitch([], kill))
    },
  )
})

test('a row that a principal of which nothing is known sees is visible to every principal', () => {
  const value = fc.constantFrom('red', 'blue', '1', 1, 3, true, false, null, ['red'])
  const row = fc.record(
    {
      team: value,
      level: fc.integer({ min: 0, max: 5 }),
      open: fc.boolean(),
      visible_to: fc.subarray(['*', 'ada', 'bob']),
      owner_id: fc.constantFrom('ada', 'bob'),
      source_filename: fc.constantFrom('1.md', '2.md'),
    },
    { requiredKeys: [] },
  )
  const attributes = fc.record(
    { team: fc.constantFrom('red', 'blue'), admin: fc.constantFrom('true', 'no') },
    { requiredKeys: [] },
  )
  const principal = fc.record({ id: fc.constantFrom('ada', 'bob', 'eve'), attributes })
  let learned = 0
  fc.assert(
    fc.property(fc.integer(), row, fc.array(principal, { minLength: 3 }), (seed, columns, principals) => {
      const next = randomNumbers(seed)
      const below = (limit: number) => Math.floor(next() * limit)
      const draw: Draw = { below, chance: share => next() < share, pick: list => list[below(list.length)]! }
      const policy = parsePolicy(drawPolicy(draw))
      if (!evaluatePolicy(policy, { id: null, attributes: {} }, columns)) return
      learned++
      for (const each of principals) expect(evaluatePolicy(policy, each, columns)).toBe(true)
    }),
    { numRuns: 1_000 },
  )
  expect(learned).toBeGreaterThan(50)
})

test('a model does not depend on the number of hidden passages [security rule 4]', async () => {
  const fitWith = async (hidden: number) => {
    const publicPassages = Array.from(
      { length: 60 },
      (_, n) => `a public text about wing${n} and flow${n % 7} number${n}`,
    )
    const passages: FitPassage[] = [
      ...Array.from({ length: hidden }, (_, n) => ({ record: n + 1, title: null, text: null })),
      ...publicPassages.map((text, n) => ({ record: hidden + n + 1, title: null, text })),
    ]
    const store = {
      collection: async () => ({ id: 1, generation: 0, records: passages.length }) as Collection,
      fitted: {
        passages: async (_: unknown, { after, limit }: { after: number; limit: number }) =>
          passages.filter(({ record }) => record > after).slice(0, limit),
      },
    } as unknown as ContentStore
    const operations = createPassageOperations(Promise.resolve(store))
    const key = { workspaceId: 'w', name: 'kb' }
    await operations.fit({ key, visibility: fullVisibility(), passagesMin: 10 })
    return (await operations.candidate(key))!.model
  }
  expect(await fitWith(40_000)).toEqual(await fitWith(0))
})
