import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { listen } from '../../src/http/listen.ts'
import { open, type TestRuntime } from '../harness/runtime.ts'

/** Creates a knowledge base with a record whose ID is `..`. */
async function createBaseWithDotRecord(): Promise<{ runtime: TestRuntime; path: string }> {
  const runtime = await open()
  const workspace = await runtime.send('POST /api/v1/workspaces', { name: 'demo' })
  const bases = `/api/v1/workspaces/${workspace.body.workspaceId}/knowledge-bases`
  const base = await runtime.send(`POST ${bases}`, { name: 'kept' })
  const path = `${bases}/${base.body.knowledgeBaseId}`
  const stored = await runtime.send(`POST ${path}/records`, { records: [{ id: '..', text: 'a step' }] })
  expect(stored.status, stored.text).toBe(200)
  return { runtime, path }
}

/** Sends a request with an unnormalized target, and returns its status. */
async function statusOf(port: number, target: string): Promise<number> {
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.on('data', part => {
    answer += part
  })
  socket.write(`DELETE ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
  await once(socket, 'close')
  return Number(answer.split(' ')[1])
}

test('the record `..` is never resolved to its knowledge base', async () => {
  const { runtime, path } = await createBaseWithDotRecord()
  const { port, close } = await listen(runtime.runtime.app, { host: '127.0.0.1', port: 0 })
  onTestFinished(async () => void (await close(0)))

  for (const step of ['..', '.', '%2e%2e', '%2E.', '..?x=1', '../', '\\..'])
    expect([400, 404], step).toContain(await statusOf(port, `${path}/records/${step}`))
  expect((await runtime.send(`DELETE ${path}/records/..`)).status).toBe(404)
  expect((await fetch(`http://127.0.0.1:${port}${path}/records/%2e%2e`, { method: 'DELETE' })).status).toBe(
    404,
  )
  expect((await runtime.send(`GET ${path}`)).status).toBe(200)
})

test('a path with a backslash is rejected, because proxies do not treat it as a slash', async () => {
  const { runtime, path } = await createBaseWithDotRecord()
  const { port, close } = await listen(runtime.runtime.app, { host: '127.0.0.1', port: 0 })
  onTestFinished(async () => void (await close(0)))
  expect(await statusOf(port, path.replace('/workspaces/', '/workspaces\\'))).toBe(400)
  expect(await statusOf(port, `${path}?x=a\\b`)).not.toBe(400)
})

test('dots that are not a path segment are part of an ID', async () => {
  const { runtime, path } = await createBaseWithDotRecord()
  const { port, close } = await listen(runtime.runtime.app, { host: '127.0.0.1', port: 0 })
  onTestFinished(async () => void (await close(0)))
  for (const id of ['...', '.a', 'a..', 'a?x=/../b', '%252e%252e', '..%5c'])
    expect(await statusOf(port, `${path}/records/${id}`), id).toBe(200)
})
