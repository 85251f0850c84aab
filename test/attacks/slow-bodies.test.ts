import { expect, test } from 'vitest'
import { makeBase } from '../harness/resources.ts'
import { open, TestClock, type TestRuntime } from '../harness/runtime.ts'

const config = { auth: { mode: 'apiKey', anonymousPolicy: 'reject' } }

/** Creates a body whose second part is sent when the test releases it. */
function createHeldBody(first: string, rest: string) {
  let release = () => {}
  const held = new Promise<void>(resolve => {
    release = resolve
  })
  let taken = () => {}
  const begun = new Promise<void>(resolve => {
    taken = resolve
  })
  const parts = [first, rest]
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (parts.length === 1) {
          taken()
          await held
        }
        controller.enqueue(Buffer.from(parts.shift()!))
        if (parts.length === 0) controller.close()
      },
    },
    { highWaterMark: 0 },
  )
  return { body, begun, release }
}

interface Key {
  readonly plaintext: string
  readonly key: { readonly keyId: string }
}

async function mint(wb: TestRuntime, workspaceId: string, body: object): Promise<Key> {
  return (await wb.sendAsOperator(`POST /api/v1/workspaces/${workspaceId}/api-keys`, body))
    .body as unknown as Key
}

function post(wb: TestRuntime, path: string, token: string, mediaType: string, body: ReadableStream) {
  return wb.runtime.fetch(
    new Request(`http://localhost${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': mediaType },
      body,
      duplex: 'half',
    } as RequestInit),
  )
}

test('S3-03: a key that is revoked while its request body arrives creates no key', async () => {
  const clock = new TestClock()
  const wb = await open({ config, clock })
  const { workspaceId } = (await wb.sendAsOperator('POST /api/v1/workspaces', { name: 'w' })).body as {
    workspaceId: string
  }
  const keys = `/api/v1/workspaces/${workspaceId}/api-keys`
  const { plaintext, key } = await mint(wb, workspaceId, { label: 'leaked', role: 'admin' })
  const { body, begun, release } = createHeldBody('{"label":"again",', '"role":"admin"}')
  const answer = post(wb, keys, plaintext, 'application/json', body)
  await begun
  expect((await wb.sendAsOperator(`DELETE ${keys}/${key.keyId}`)).status).toBe(204)
  clock.advance(1_000)
  release()
  expect((await answer).status).toBe(401)
  expect((await wb.sendAsOperator(`GET ${keys}`)).body.items).toHaveLength(1)
})

test('S3-03: a key that is revoked while its lines arrive ingests no further lines', async () => {
  const clock = new TestClock()
  const wb = await open({ config, clock })
  const operator = { ...wb, call: wb.callAsOperator }
  const { params } = await makeBase(operator)
  const { workspaceId, knowledgeBaseId } = params
  const { plaintext, key } = await mint(wb, workspaceId, { label: 'leaked' })
  const at = `/api/v1/workspaces/${workspaceId}/knowledge-bases/${knowledgeBaseId}`
  const line = (n: number) => `${JSON.stringify({ text: `Passage ${n} on ornithopters.` })}\n`
  const { body, begun, release } = createHeldBody(line(1), line(2) + line(3))
  const answer = post(wb, `${at}/ingest/batch`, plaintext, 'application/x-ndjson', body)
  await begun
  await wb.sendAsOperator(`DELETE /api/v1/workspaces/${workspaceId}/api-keys/${key.keyId}`)
  clock.advance(1_000)
  release()
  expect(await (await answer).text()).toContain('"unauthorized"')
  expect((await wb.sendAsOperator(`GET ${at}/documents`)).body.items).toHaveLength(1)
})
