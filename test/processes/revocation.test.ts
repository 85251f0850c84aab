import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { productionCost } from '../../src/auth/keys/token.ts'
import { changeRow } from '../../src/storage/change-row.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { tables } from '../../src/storage/tables.ts'
import { open } from '../harness/runtime.ts'
import { spawnServe } from '../wire/harness.ts'

const keysMade = 20
const rounds = 1_000
const auth = { mode: 'apiKey', anonymousPolicy: 'reject' }

interface Answer {
  readonly status: number
  readonly message: string | undefined
}

/** One of the processes that share the data directory. */
type Process = (line: string, token: string) => Promise<Answer>

/** `wb serve` in a child process, a runtime in this process, and their store. */
async function stage() {
  const folder = mkdtempSync(join(tmpdir(), 'wb-revocation-'))
  const config = join(folder, 'workbase.yaml')
  writeFileSync(config, JSON.stringify({ version: 1, auth }))
  const serving = await spawnServe({ args: ['--config', config] })
  onTestFinished(async () => {
    await serving.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  const here = await open({ dataDir: serving.dataDir, config: { auth }, keyCost: productionCost })
  const store = await openEmbeddedStore({ path: join(serving.dataDir, 'workbase.db') })
  onTestFinished(() => store.close())

  const theirs: Process = async (line, token) => {
    const [method, path] = line.split(' ') as [string, string]
    const headers = { authorization: `Bearer ${token}` }
    const answer = await fetch(serving.url + path, { method, headers })
    const text = await answer.text()
    return { status: answer.status, message: text && JSON.parse(text).error?.message }
  }
  const ours: Process = async (line, token) => {
    const { status, text } = await here.send(line, undefined, { authorization: `Bearer ${token}` })
    return { status, message: text && JSON.parse(text).error?.message }
  }
  return { here, store, ours, theirs }
}

test(`S3-03 S7.2-05: a key that is cached in two processes and revoked through one is rejected by the other on the next request, ${rounds} times`, async () => {
  const { here, store, ours, theirs } = await stage()
  const { body } = await here.sendAsOperator('POST /api/v1/workspaces', { name: 'shared' })
  const place = `/api/v1/workspaces/${body.workspaceId}`
  const mint = async (role: string) => {
    const made = await here.sendAsOperator(`POST ${place}/api-keys`, { label: role, role })
    expect(made.status, made.text).toBe(201)
    const { plaintext, key } = made.body as { plaintext: string; key: { keyId: string } }
    return { token: plaintext, keyId: key.keyId }
  }
  const admin = await mint('admin')
  const keys = []
  for (let n = 0; n < keysMade; n++) keys.push(await mint('viewer'))

  /** Restores a key, which no route does, so both processes have cached it. */
  const bringBack = (keyId: string) =>
    changeRow(store.rows, tables.apiKeys, [String(body.workspaceId), keyId], row => ({
      ...row,
      revokedAt: null,
    }))
  const good = { status: 200, message: undefined }
  const refused = { status: 401, message: 'the key was revoked' }

  for (let round = 0; round < rounds; round++) {
    const { token, keyId } = keys[round % keysMade]!
    const [first, second] = round % 2 === 0 ? [ours, theirs] : [theirs, ours]
    for (const one of [first, second]) expect(await one(`GET ${place}`, token)).toEqual(good)
    const revoked = await first(`DELETE ${place}/api-keys/${keyId}`, admin.token)
    expect(revoked.status, revoked.message).toBe(204)
    for (const one of [second, first]) expect(await one(`GET ${place}`, token)).toEqual(refused)
    await bringBack(keyId)
  }
}, 180_000)

test('S3-04 S5.9-07: a key rotated without a grace period through one process is expired in the other, and its successor works in both', async () => {
  const { here, ours, theirs } = await stage()
  const { body } = await here.sendAsOperator('POST /api/v1/workspaces', { name: 'shared' })
  const place = `/api/v1/workspaces/${body.workspaceId}`
  const made = await here.sendAsOperator(`POST ${place}/api-keys`, { label: 'old', role: 'viewer' })
  const old = made.body as { plaintext: string; key: { keyId: string } }
  for (const one of [ours, theirs]) expect((await one(`GET ${place}`, old.plaintext)).status).toBe(200)
  const path = `${place}/api-keys/${old.key.keyId}/rotate`
  const rotated = await here.sendAsOperator(`POST ${path}`, { graceSeconds: 0 })
  for (const one of [theirs, ours]) {
    expect(await one(`GET ${place}`, old.plaintext)).toEqual({ status: 401, message: 'the key has expired' })
    expect((await one(`GET ${place}`, String(rotated.body.plaintext))).status).toBe(200)
  }
})
