import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type SignInProvider, sendHeldBody, startSignInProvider, tally } from '../harness/body-attacks.ts'
import { memoryOf } from '../harness/process-usage.ts'
import { exchangeBytes, responsesIn } from '../harness/request-heads.ts'
import { spawnServe } from '../wire/harness.ts'

const bootstrap = 'b'.repeat(40)
/** Maximum resident memory of the process, far below the bytes that the attacks send. */
const residentMax = 600_000_000

let folder: string
let serving: Awaited<ReturnType<typeof spawnServe>>
let provider: SignInProvider
let port: number
let base: string
let keys: { viewer: string; editor: string; other: string }

async function call(token: string, path: string, body?: object) {
  const answer = await fetch(serving.url + path, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
    body: body && JSON.stringify(body),
  })
  return { status: answer.status, body: (await answer.json()) as Record<string, string> }
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'wb-bodies-'))
  const config = join(folder, 'workbase.yaml')
  provider = await startSignInProvider()
  const auth = { ...provider.auth, bootstrapTokenRef: 'env:BOOTSTRAP' }
  writeFileSync(config, JSON.stringify({ version: 1, auth }))
  serving = await spawnServe({ env: { BOOTSTRAP: bootstrap }, args: ['--config', config] })
  port = Number(new URL(serving.url).port)
  const { workspaceId } = (await call(bootstrap, '/api/v1/workspaces', { name: 'attacked' })).body
  const workspace = `/api/v1/workspaces/${workspaceId}`
  const { knowledgeBaseId } = (await call(bootstrap, `${workspace}/knowledge-bases`, { name: 'kb' })).body
  base = `${workspace}/knowledge-bases/${knowledgeBaseId}`
  const mint = async (role: string) =>
    (await call(bootstrap, `${workspace}/api-keys`, { label: role, role })).body.plaintext!
  keys = { viewer: await mint('viewer'), editor: await mint('editor'), other: await mint('viewer') }
})
afterAll(async () => {
  await serving.stop()
  provider.close()
  rmSync(folder, { recursive: true })
})

interface Attack {
  line: string
  token?: string
  connections: number
  declaredBytes: number
  sentBytes: number
}

/**
 * Sends bodies on many connections at once while another key searches, and returns the number of attack
 * responses by status.
 */
async function attack({ connections, ...each }: Attack) {
  const stop = new AbortController()
  const answers = Array.from({ length: connections }, () =>
    sendHeldBody({ ...each, port, stop: stop.signal }),
  )
  const refused = Promise.allSettled(answers)
  const searches: number[] = []
  for (let at = 0; at < 20; at++)
    searches.push((await call(keys.other, `${base}/search`, { text: 'wing' })).status)
  // A stalled body is answered only after its idle timeout. All other bodies are answered soon.
  const isStalled = each.sentBytes < each.declaredBytes
  if (!isStalled) await refused
  stop.abort()
  expect(memoryOf(serving.process.pid!).peak).toBeLessThan(residentMax)
  expect([...tally(searches).keys()]).toEqual([200])
  return tally(await Promise.all(answers))
}

test('stalled ingests hold only the memory budget of their caller, and further ones get 503 [security rule 19]', async () => {
  const statuses = await attack({
    line: `POST ${base}/ingest`,
    token: keys.editor,
    connections: 60,
    declaredBytes: 49_000_000,
    sentBytes: 12_000_000,
  })
  expect(statuses.get(503)).toBe(59)
})

test('anonymous callers can send only a few kilobytes to the sign-in routes [security rule 19]', async () => {
  const statuses = await attack({
    line: 'POST /auth/device/token',
    connections: 110,
    declaredBytes: 9_900_000,
    sentBytes: 9_900_000,
  })
  expect([...statuses]).toEqual([[413, 110]])
})

test('large searches are decoded within the budget: some get a result, the others get 503', async () => {
  const statuses = await attack({
    line: `POST ${base}/search`,
    token: keys.viewer,
    connections: 60,
    declaredBytes: 9_900_000,
    sentBytes: 9_900_000,
  })
  expect(statuses.get(400)).toBeGreaterThan(0)
  expect((statuses.get(400) ?? 0) + (statuses.get(503) ?? 0)).toBe(60)
})

test('a rejected body gets a retry-after header, and does not count toward the rate limit', async () => {
  const stop = new AbortController()
  const held = { port, token: keys.editor, line: `POST ${base}/ingest`, stop: stop.signal }
  const first = sendHeldBody({ ...held, declaredBytes: 49_000_000, sentBytes: 1_000 })
  await expect.poll(() => sendHeldBody({ ...held, declaredBytes: 49_000_000, sentBytes: 1_000 })).toBe(503)
  const head = [
    `POST ${base}/ingest HTTP/1.1`,
    'Host: localhost',
    `Authorization: Bearer ${keys.editor}`,
    'Content-Type: application/json',
    'Content-Length: 49000000',
  ]
  const bytes = await exchangeBytes(port, Buffer.from(`${head.join('\r\n')}\r\n\r\n`))
  const [refused] = responsesIn(bytes, 'POST')
  expect(refused!.status).toBe(503)
  expect(refused!.headers.get('retry-after')).toBe('1')
  expect(JSON.parse(refused!.body).error.code).toBe('overloaded')
  stop.abort()
  await first
})

/** Sends a search with a read-only key and the given JSON body. */
function searchFor(body: string): Promise<Response> {
  return fetch(`${serving.url}${base}/search`, {
    method: 'POST',
    headers: { authorization: `Bearer ${keys.viewer}`, 'content-type': 'application/json' },
    body,
  })
}

test('a large body is validated like a small one: unknown fields are named, and the first issue is reported', async () => {
  const search = (body: object) => searchFor(JSON.stringify(body))
  const padding = 'x'.repeat(1_000_000)
  const [small, large] = await Promise.all(
    [
      { text: 'wing', one: 1 },
      { text: 'wing', one: padding },
    ].map(search),
  )
  expect([large!.status, large!.headers.get('x-workbase-ignored')]).toEqual([200, 'one'])
  expect(await large!.json()).toEqual(await small!.json())
  const wrong = await search({ text: 'wing', topK: 'ten', padding })
  expect([wrong.status, ((await wrong.json()) as { error: object }).error]).toEqual([
    400,
    expect.objectContaining({ code: 'validation_error', message: expect.stringMatching(/^topK: /) }),
  ])
})

test('a body of a million brackets is rejected, and memory stays far below the limit', async () => {
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => searchFor(`{"text":[${'[],'.repeat(3_000_000)}1]}`)),
  )
  for (const answer of answers) expect(await answer.text()).toContain('validation_error')
  expect(memoryOf(serving.process.pid!).peak).toBeLessThan(residentMax)
})

test('a client that waits for 100 Continue does not send a body that would be rejected', async () => {
  const ask = (token: string) =>
    new Promise<string>(resolve => {
      let text = ''
      const body = JSON.stringify({ text: 'wing' })
      const socket = connect(port, '127.0.0.1')
      socket.on('data', part => {
        text += part
        if (text.startsWith('HTTP/1.1 100 Continue') && !text.includes('HTTP/1.1 200')) socket.write(body)
        if (/HTTP\/1\.1 [24]\d\d/.test(text)) socket.destroy()
      })
      socket.on('close', () => resolve(text))
      const head = [
        `POST ${base}/search HTTP/1.1`,
        'Host: localhost',
        `Authorization: Bearer ${token}`,
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
        'Expect: 100-continue',
      ]
      socket.write(`${head.join('\r\n')}\r\n\r\n`)
    })
  expect(await ask(keys.viewer)).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /)
  expect(await ask(`${keys.viewer}x`)).toMatch(/^HTTP\/1\.1 401 /)
})
