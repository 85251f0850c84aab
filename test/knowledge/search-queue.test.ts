import { expect, test } from 'vitest'
import type { ContentStore } from '../../src/storage/content.ts'
import { makeBase, makeMockService, makeWorkspace } from '../harness/resources.ts'
import { open, waitUntil } from '../harness/runtime.ts'

const vectors = { busy: [1, 0, 0], other: [0, 1, 0] }
type CallerName = keyof typeof vectors

/** Opens a runtime whose vector searches wait in the store until the test releases them. */
async function openWithHeldSearches() {
  const started: CallerName[] = []
  const held: (() => void)[] = []
  const content = (store: ContentStore): ContentStore => ({
    ...store,
    async nearest(key, query) {
      started.push(query.vector[0] === 1 ? 'busy' : 'other')
      await new Promise<void>(release => held.push(release))
      return store.nearest(key, query)
    },
  })
  const auth = { mode: 'apiKey', anonymousPolicy: 'reject' }
  const wb = await open({ content, config: { auth } })
  const operator = { ...wb, call: wb.callAsOperator, send: wb.sendAsOperator }
  const { workspaceId } = await makeWorkspace(operator)
  const { embeddingServiceId } = await makeMockService(operator, workspaceId)
  const { path } = await makeBase(operator, { workspaceId, embeddingServiceId })
  const keyIds = new Map<CallerName, string>()
  const tokenOf = async (label: CallerName) => {
    const keys = `POST /api/v1/workspaces/${workspaceId}/api-keys`
    const { body } = await wb.sendAsOperator(keys, { label, role: 'viewer' })
    keyIds.set(label, (body.key as { keyId: string }).keyId)
    return body.plaintext
  }
  const tokens = { busy: await tokenOf('busy'), other: await tokenOf('other') }
  const post = (caller: CallerName, url: string, signal: AbortSignal | null) =>
    wb.runtime.fetch(
      new Request(`http://localhost${url}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${tokens[caller]}`, 'content-type': 'application/json' },
        body: JSON.stringify({ vector: vectors[caller] }),
        signal,
      }),
    )
  return {
    started,
    /** Revokes the key of a caller. */
    revoke: (caller: CallerName) =>
      wb.sendAsOperator(`DELETE /api/v1/workspaces/${workspaceId}/api-keys/${keyIds.get(caller)}`),
    search: (caller: CallerName, signal: AbortSignal | null = null) => post(caller, `${path}/search`, signal),
    searchMany: (caller: CallerName) => post(caller, `/api/v1/workspaces/${workspaceId}/search`, null),
    /** Releases a search, and waits until the next one starts. */
    async releaseOne() {
      const before = started.length
      held.shift()!()
      await waitUntil(() => started.length > before)
    },
    /** Releases all searches until the responses have arrived. */
    async releaseAll(responses: readonly Promise<Response>[]) {
      let isEnded = false
      const answers = Promise.all(responses).finally(() => {
        isEnded = true
      })
      await waitUntil(() => {
        for (const release of held.splice(0)) release()
        return isEnded
      })
      return answers
    },
  }
}

test.each(['search', 'searchMany'] as const)(
  'a search of another caller does not wait for all that arrived before it (%s)',
  async route => {
    const place = await openWithHeldSearches()
    const responses = Array.from({ length: 40 }, () => place[route]('busy'))
    await waitUntil(() => place.started.length >= 8)
    responses.push(place[route]('other'))
    while (!place.started.includes('other')) await place.releaseOne()
    expect(place.started.indexOf('other')).toBeLessThan(40)
    const statuses = (await place.releaseAll(responses)).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([200]))
  },
)

test('a waiting search does not run after its client has disconnected', async () => {
  const place = await openWithHeldSearches()
  const disconnect = new AbortController()
  const responses = Array.from({ length: 40 }, () => place.search('busy', disconnect.signal))
  await waitUntil(() => place.started.length >= 8)
  disconnect.abort()
  responses.push(place.search('other'))
  const answers = await place.releaseAll(responses)
  expect(answers.at(-1)!.status).toBe(200)
  expect(place.started.filter(caller => caller === 'busy')).toHaveLength(8)
})

test.each(['search', 'searchMany'] as const)(
  'a search that waits is rejected if its key has been revoked in the meantime (%s)',
  async route => {
    const place = await openWithHeldSearches()
    const running = Array.from({ length: 8 }, () => place[route]('busy'))
    await waitUntil(() => place.started.length === 8)
    const waiting = place[route]('busy')
    expect((await place.revoke('busy')).status).toBe(204)
    const answers = await place.releaseAll([...running, waiting])
    expect(answers.at(-1)!.status).toBe(401)
    expect(place.started).toHaveLength(8)
  },
)
