import { expect, test } from 'vitest'
import { z } from 'zod'
import { anonymousContext } from '../../src/access/subject.ts'
import { anyCaller } from '../../src/contract/access.ts'
import { route } from '../../src/contract/route.ts'
import { createApp } from '../../src/http/app.ts'
import { openAccess } from '../harness/open-access.ts'
import { scratchDir, TestClock } from '../harness/runtime.ts'
import { file, formBytes, formHeaders } from '../wire/forms.ts'
import { settings } from './test-app.ts'

const api = {
  files: {
    send: route({
      method: 'POST',
      path: '/api/v1/files',
      summary: 'Send a file',
      access: anyCaller,
      body: { kind: 'multipart', schema: z.object({}), json: [], limitBytes: 1_000 },
      replies: { 200: z.object({ bytes: z.number() }) },
      errors: ['invalid_multipart', 'missing_file', 'empty_file'],
    }),
  },
}

function createUploadApp() {
  const silent = () => {}
  return createApp({
    api,
    handlers: {
      files: {
        send: ({ body }) =>
          body.receive(async ({ file: sent }) => ({ status: 200, body: { bytes: sent.sizeBytes } })),
      },
    },
    authenticate: () => anonymousContext('apiKey'),
    anonymous: anonymousContext('apiKey'),
    scopeToWorkspace: auth => auth,
    audit: {
      note: silent,
      draft: () => {
        throw new Error('nothing is recorded here')
      },
    },
    rowAccess: openAccess,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    clock: new TestClock(),
    settings: { ...settings, uploadDir: scratchDir() },
  })
}

test('rejects concurrent uploads of a caller after 32 until one ends, and other callers are not affected', async () => {
  const app = createUploadApp()
  const bytes = formBytes([file('x')])
  const send = (address: string, body: Buffer | ReadableStream<Uint8Array>) =>
    app.fetch(
      new Request('http://localhost/api/v1/files', {
        method: 'POST',
        headers: { ...formHeaders, host: 'localhost' },
        body,
        duplex: 'half',
      } as RequestInit),
      { peer: { encrypted: false, address } },
    )
  const ends: (() => void)[] = []
  const slow = () =>
    new ReadableStream<Uint8Array>({
      start(controller) {
        ends.push(() => {
          controller.enqueue(bytes)
          controller.close()
        })
      },
    })
  const [mine, theirs] = ['192.0.2.1', '192.0.2.2']
  const open = Array.from({ length: 32 }, () => send(mine, slow()))
  const refused = await send(mine, bytes)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '15'])
  expect(await refused.json()).toMatchObject({
    error: { code: 'rate_limited', message: 'this caller has 32 uploads open' },
  })
  expect((await send(theirs, bytes)).status).toBe(200)
  ends.shift()!()
  expect((await open[0]!).status).toBe(200)
  expect((await send(mine, bytes)).status).toBe(200)
  for (const end of ends) end()
  expect((await Promise.all(open)).map(({ status }) => status)).toEqual(Array(32).fill(200))
})
