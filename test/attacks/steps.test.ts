import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { listen } from '../../src/http/listen.ts'
import { type Opened, open } from '../harness/runtime.ts'

/** A knowledge base that holds a record whose id is a step. */
async function baseWithStep(): Promise<{ runtime: Opened; path: string }> {
  const runtime = await open()
  const workspace = await runtime.send('POST /api/v1/workspaces', { name: 'demo' })
  const bases = `/api/v1/workspaces/${workspace.body.workspaceId}/knowledge-bases`
  const base = await runtime.send(`POST ${bases}`, { name: 'kept' })
  const path = `${bases}/${base.body.knowledgeBaseId}`
  const stored = await runtime.send(`POST ${path}/records`, { records: [{ id: '..', text: 'a step' }] })
  expect(stored.status, stored.text).toBe(200)
  return { runtime, path }
}

/** Status of a request whose target no client has tidied up. */
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

test('the record `..` is not its knowledge base, whoever resolves the path', async () => {
  const { runtime, path } = await baseWithStep()
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

test('a backslash, which a proxy does not read as a slash, is in no path', async () => {
  const { runtime, path } = await baseWithStep()
  const { port, close } = await listen(runtime.runtime.app, { host: '127.0.0.1', port: 0 })
  onTestFinished(async () => void (await close(0)))
  expect(await statusOf(port, path.replace('/workspaces/', '/workspaces\\'))).toBe(400)
  expect(await statusOf(port, `${path}?x=a\\b`)).not.toBe(400)
})

test('dots that are no step are part of an id', async () => {
  const { runtime, path } = await baseWithStep()
  const { port, close } = await listen(runtime.runtime.app, { host: '127.0.0.1', port: 0 })
  onTestFinished(async () => void (await close(0)))
  for (const id of ['...', '.a', 'a..', 'a?x=/../b', '%252e%252e', '..%5c'])
    expect(await statusOf(port, `${path}/records/${id}`), id).toBe(200)
})
