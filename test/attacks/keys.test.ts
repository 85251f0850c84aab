import { createHook } from 'node:async_hooks'
import { availableParallelism } from 'node:os'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Admission, type AdmissionTask } from '../../src/auth/keys/admission.ts'
import { ApiKeyVerifier } from '../../src/auth/keys/key-verifier.ts'
import { newToken } from '../../src/auth/keys/token.ts'
import { openKeyStore, storeKey } from '../auth/keys/key-store.ts'
import { open, type TestRuntime, waitUntil } from '../harness/runtime.ts'

const requireKeys = { auth: { mode: 'apiKey', anonymousPolicy: 'reject' } }
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const mintsInFlight = 400

interface Minted {
  readonly plaintext: string
  readonly key: { readonly keyId: string }
}

/** Creates a workspace, and returns its path, the path of its keys, and an admin key. */
async function createWorkspace({ sendAsOperator }: TestRuntime, name: string) {
  const made = await sendAsOperator('POST /api/v1/workspaces', { name })
  const place = `/api/v1/workspaces/${made.body.workspaceId}`
  const keys = `${place}/api-keys`
  const { body } = await sendAsOperator(`POST ${keys}`, { label: 'admin', role: 'admin' })
  const { plaintext: token, key } = body as unknown as Minted
  return { place, keys, token, keyId: key.keyId }
}

/** Sends requests at the same time, and collects their statuses as they arrive. */
function flood(count: number, send: () => Promise<{ status: number }>) {
  const statuses: number[] = []
  const all = Array.from({ length: count }, async () => void statuses.push((await send()).status))
  return { statuses, ended: Promise.all(all), of: (status: number) => statuses.filter(one => one === status) }
}

async function countKeys({ sendAsOperator }: TestRuntime, keys: string): Promise<number> {
  const { body } = await sendAsOperator(`GET ${keys}?limit=200`)
  return (body.items as unknown[]).length
}

describe('a revoked key', () => {
  test(`creates none of the ${mintsInFlight} keys that are still queued`, async () => {
    const wb = await open({ config: requireKeys })
    const { keys, token, keyId } = await createWorkspace(wb, 'mine')
    const mints = flood(mintsInFlight, () => wb.send(`POST ${keys}`, { label: 'heir' }, bearer(token)))
    await waitUntil(() => mints.of(201).length > 0)
    expect((await wb.sendAsOperator(`DELETE ${keys}/${keyId}`)).status).toBe(204)
    const atRevocation = await countKeys(wb, keys)
    await mints.ended
    expect(await countKeys(wb, keys)).toBe(atRevocation)
    expect(mints.of(401).length).toBeGreaterThan(30)
    expect(new Set(mints.statuses)).toEqual(new Set([201, 401, 429]))
  })

  test('rotates no key in requests that are still queued', async () => {
    const wb = await open({ config: requireKeys })
    const { keys, token, keyId } = await createWorkspace(wb, 'mine')
    const made = await wb.sendAsOperator(`POST ${keys}`, { label: 'other' })
    const path = `${keys}/${(made.body as unknown as Minted).key.keyId}`
    const rotations = flood(40, () => wb.send(`POST ${path}/rotate`, { graceSeconds: 60 }, bearer(token)))
    await waitUntil(() => rotations.of(201).length > 0)
    expect((await wb.sendAsOperator(`DELETE ${keys}/${keyId}`)).status).toBe(204)
    const atRevocation = await countKeys(wb, keys)
    await rotations.ended
    expect(await countKeys(wb, keys)).toBe(atRevocation)
    expect(rotations.of(401).length).toBeGreaterThan(20)
  })
})

describe('a workspace that creates keys without end', () => {
  test('does not delay key creation in another workspace, or the first use of a key', async () => {
    const wb = await open({ config: requireKeys })
    const [a, b] = [await createWorkspace(wb, 'a'), await createWorkspace(wb, 'b')]
    const mints = flood(mintsInFlight, () => wb.sendAsOperator(`POST ${a.keys}`, { label: 'one of many' }))
    await waitUntil(() => mints.of(429).length > 0)
    const { status } = await wb.send(`POST ${b.keys}`, { label: 'one' }, bearer(b.token))
    expect(status).toBe(201)
    // The two digests for B each follow one for A. Most of the other requests of A are still waiting.
    expect(mints.of(201).length).toBeLessThan(40)
    await mints.ended
    expect(new Set(mints.statuses)).toEqual(new Set([201, 429]))
  })
})

/** Records the highest number of digests that this process computes at once, until the test ends. */
function recordConcurrentDigests(): { most: number } {
  const seen = { most: 0 }
  const active = new Set<number>()
  const hook = createHook({
    init(id, type) {
      if (type !== 'SCRYPTREQUEST') return
      active.add(id)
      seen.most = Math.max(seen.most, active.size)
    },
    before: id => void active.delete(id),
  }).enable()
  onTestFinished(() => void hook.disable())
  return seen
}

test('key creation and token checks together use at most half of the CPU cores [security rule 10]', async () => {
  const wb = await open({ config: requireKeys })
  const { place, keys } = await createWorkspace(wb, 'mine')
  const seen = recordConcurrentDigests()
  const mints = flood(20, () => wb.sendAsOperator(`POST ${keys}`, { label: 'one of many' }))
  const guesses = flood(15, () => wb.send(`GET ${place}`, undefined, bearer(newToken('a guess').token)))
  await Promise.all([mints.ended, guesses.ended])
  expect([mints.of(201).length, guesses.of(401).length]).toEqual([20, 15])
  expect(seen.most).toBeGreaterThan(0)
  expect(seen.most).toBeLessThanOrEqual(Math.max(1, Math.floor(availableParallelism() / 2)))
})

/** Runs one task at a time, counts and records tasks, and rejects the rest once `isOver` is set. */
class RecordingAdmission extends Admission {
  readonly begun: AdmissionTask[] = []
  asked = 0
  isOver = false

  override run<T>(turn: AdmissionTask, work: () => Promise<T>): Promise<T> {
    this.asked++
    return super.run(turn, () => {
      this.begun.push(turn)
      return this.isOver ? Promise.reject(new Error('over')) : work()
    })
  }
}

describe('900 addresses with wrong tokens', () => {
  test('neither reject nor delay the first use of a valid key [security rule 10]', async () => {
    const store = await openKeyStore()
    const admission = new RecordingAdmission({ runningMax: 1 })
    const log = { debug() {}, info() {}, warn() {}, error() {} }
    const verifier = new ApiKeyVerifier({ ...store, log, admission })
    onTestFinished(() => verifier.close())
    const present = (token: string, client: string) =>
      verifier.verify(token, {
        authorization: null,
        cookie: null,
        client,
        requestId: 'r',
        siteOrigin: () => 'http://x',
      })!
    const cold = await Promise.all(Array.from({ length: 12 }, () => storeKey(store.plain)))
    const guesses = Promise.allSettled(
      Array.from({ length: 900 }, (_, n) => present(newToken('a guess').token, `guesser ${n}`)),
    )
    await waitUntil(() => admission.asked === 900)
    const before = admission.begun.length
    const letIn = await Promise.all(cold.map(({ token }, n) => present(token, `client ${n}`)))
    expect(letIn.map(({ subject }) => subject.id)).toEqual(cold.map(({ row }) => row.keyId))
    const queues = admission.begun.slice(before).map(({ queue }) => queue)
    // The lookup that was running may finish first. No guess runs between valid tokens.
    expect(queues.indexOf('withChecksum')).toBeLessThanOrEqual(1)
    expect(queues.filter(queue => queue === 'withChecksum')).toHaveLength(12)
    expect(queues.lastIndexOf('withChecksum') - queues.indexOf('withChecksum')).toBe(11)
    admission.isOver = true
    await guesses
  })
})
