import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { mcpServers } from '../../../src/contract/mcp-servers.ts'
import { type FakeTool, startMcpServer } from '../../fakes/mcp-server.ts'
import { scratchDir, TestClock, type TestRuntimeOptions, waitUntil } from '../../harness/runtime.ts'
import { keyWith, setUpTools } from '../../harness/tools.ts'

/** Opens a runtime with a registered server that has the given tools. */
async function openWithServer(
  tools: readonly (string | FakeTool)[],
  options: TestRuntimeOptions = {},
  fields: object = {},
) {
  const server = await startMcpServer({ tools })
  const stage = await setUpTools(options)
  const { wb, workspaceId } = stage
  const body = { label: 'tools', url: server.url, ...fields }
  const { mcpServerId } = await wb.call(mcpServers.create, { params: { workspaceId }, body })
  return { ...stage, server, mcpServerId, id: (name: string) => `mcp:${mcpServerId}:${name}` }
}

const text = (words: string) => ({ content: [{ type: 'text' as const, text: words }] })

test('S6-06: a tool of a registered server gets the arguments of the model, and the call is audited', async () => {
  const { run, id, mcpServerId, auditRecords } = await openWithServer([
    { name: 'look', call: args => text(JSON.stringify(args)) },
  ])
  expect(await run(id('look'), { city: 'Ulm' })).toEqual({ content: '{"city":"Ulm"}', outcome: 'success' })
  await waitUntil(async () => (await auditRecords()).length === 1)
  expect((await auditRecords())[0]).toMatchObject({
    action: 'tool.invoke',
    outcome: 'success',
    requestId: 'request-1',
    details: { toolName: id('look'), source: 'mcp', mcpServerId, agentId: 'agent-1' },
  })
})

test('S2.4-11 S5.5-26 S5.5-27 S5.5-28 S5.5-29 S6-07: an external tool requires tools:invoke or write, and otherwise is denied and audited', async () => {
  const { run, id, auditRecords, server } = await openWithServer(['look'])
  const outcomes = async (...auths: Parameters<typeof keyWith>[]) =>
    Promise.all(auths.map(async scopes => (await run(id('look'), {}, { auth: keyWith(...scopes) })).outcome))
  expect(await outcomes(['read', 'tools:invoke'], ['write'])).toEqual(['success', 'success'])
  expect((await run(id('look'))).outcome).toBe('success')
  const calls = server.received.length
  expect(await outcomes(['read'], ['manage'], ['write:agents'])).toEqual(['denied', 'denied', 'denied'])
  expect(server.received).toHaveLength(calls)
  const denied = await run(id('look'), {}, { auth: keyWith('read') })
  expect(denied.content).toBe(`Error: the tool ${id('look')} is not permitted: missing tools:invoke scope.`)
  await waitUntil(async () => (await auditRecords()).length === 7)
  expect((await auditRecords())[0]).toMatchObject({
    outcome: 'denied',
    subject: { type: 'apiKey', id: 'a key' },
    details: { toolName: id('look'), reason: 'missing tools:invoke scope' },
  })
})

test('S5.5-30: built-in and native tools run without the scopes of external tools', async () => {
  const { run } = await setUpTools({ config: { chat: { tools: { fetch: { enabled: true } } } } })
  const auth = keyWith('read')
  expect((await run('count_documents', {}, { auth })).outcome).toBe('success')
  const fetched = await run('native:fetch', { url: 'http://127.0.0.1:8099/' }, { auth })
  expect([fetched.outcome, fetched.content]).toEqual([
    'failure',
    expect.stringContaining('resolves to a private address'),
  ])
})

test('parts that are not text are named, and a tool error or a missing tool is a failed result', async () => {
  const image = { type: 'image' as const, data: 'aGk=', mimeType: 'image/png' }
  const { run, id } = await openWithServer([
    { name: 'mixed', call: () => ({ content: [...text('one').content, image, ...text('two').content] }) },
    { name: 'fails', call: () => ({ ...text('no such city'), isError: true }) },
    { name: 'silent', call: () => ({ content: [] }) },
  ])
  expect((await run(id('mixed'))).content).toBe('one\n[image left out]\ntwo')
  expect((await run(id('silent'))).content).toBe('The tool returned no text.')
  expect(await run(id('fails'))).toEqual({
    content: 'Error: no such city',
    outcome: 'failure',
    reason: 'the tool reported an error',
  })
  const absent = await run(id('absent'))
  expect([absent.outcome, absent.reason]).toEqual(['denied', 'the tool is not available to the agent'])
})

test('embedded texts and links reach the model with a size limit, and structured content replaces missing text', async () => {
  const link = {
    type: 'resource_link' as const,
    uri: 'https://wiki.example.com/1',
    name: 'p1',
    title: 'Page one',
  }
  const embedded = (
    resource: { uri: string; mimeType?: string; text: string } | { uri: string; blob: string },
  ) => ({
    content: [{ type: 'resource' as const, resource }],
  })
  const structuredContent = { found: 1 }
  const { run, id } = await openWithServer([
    { name: 'page', call: () => embedded({ uri: 'wiki:1', mimeType: 'text/html', text: '<p>One</p>' }) },
    { name: 'file', call: () => embedded({ uri: 'wiki:2', blob: 'aGk=' }) },
    { name: 'links', call: () => ({ content: [link, { ...link, description: 'd '.repeat(9_999) }] }) },
    { name: 'both', call: () => ({ content: [link], structuredContent }) },
  ])
  expect((await run(id('page'))).content).toBe('[resource wiki:1]\n<p>One</p>')
  expect((await run(id('file'))).content).toBe('[resource wiki:2 left out]')
  const [first, second] = (await run(id('links'))).content.split('\n')
  expect(first).toBe('[link Page one https://wiki.example.com/1]')
  expect(second!.startsWith(`${first}: d d`)).toBe(true)
  expect(second!.length).toBeLessThan(500)
  expect((await run(id('both'))).content).toBe(`{"found":1}\n${first}`)
})

test('a result of ten megabytes and a missing result are failures, and a long result is cut', async () => {
  const clock = new TestClock()
  let isAsked = false
  const { run, id, auditRecords } = await openWithServer(
    [
      { name: 'floods', call: () => text('x'.repeat(10_000_000)) },
      { name: 'long', call: () => text(`${'y'.repeat(31_968)}😀${'z'.repeat(10_000)}`) },
      {
        name: 'hangs',
        call: () => {
          isAsked = true
          return new Promise(() => {})
        },
      },
    ],
    { clock },
  )
  const flood = await run(id('floods'))
  expect([flood.outcome, flood.content]).toEqual([
    'failure',
    expect.stringMatching(/^Error: .* more than 2000000 bytes/),
  ])
  const { content, outcome } = await run(id('long'))
  expect([outcome, content.length <= 32_000, /\p{Surrogate}/u.test(content)]).toEqual([
    'success',
    true,
    false,
  ])
  expect(content).toMatch(/\[cut off at 32000 characters\]$/)
  const hanging = run(id('hangs'))
  await waitUntil(() => isAsked)
  clock.advance(30_000)
  expect(await hanging).toMatchObject({
    outcome: 'failure',
    content: expect.stringMatching(/^Error: .*30 s/),
    reason: expect.stringContaining('30 s'),
  })
  await waitUntil(async () => (await auditRecords()).length === 3)
  expect((await auditRecords()).map(record => record.outcome)).toEqual(['failure', 'success', 'failure'])
})

test.each([
  ['invalid JSON', '{"a":', 'the arguments are not JSON'],
  ['a JSON array', '[1]', 'the arguments are not a JSON object'],
  ['too many levels', `{"a":${'['.repeat(64)}${']'.repeat(64)}}`, 'nested deeper than 64 levels'],
])('arguments with %s cause a failed result', async (_, args, reason) => {
  const { run, auditRecords } = await setUpTools()
  const result = await run('list_kbs', args)
  expect([result.outcome, result.reason]).toEqual(['failure', expect.stringContaining(reason)])
  await waitUntil(async () => (await auditRecords()).length === 1)
  expect((await auditRecords())[0]).toMatchObject({ outcome: 'failure', details: { source: 'builtin' } })
})

test("missing arguments are an empty object, and a tool outside the agent's list is denied", async () => {
  const { run, auditRecords, gate, toolsOf, context } = await setUpTools()
  expect((await run('list_kbs', '')).outcome).toBe('success')
  const other = await run('list_kbs', {}, { toolIds: ['search_kb'] })
  expect([other.outcome, other.content]).toEqual(['denied', expect.stringMatching(/^Error: .*list_kbs/)])
  const call = { id: 'call-1', name: 'search_kb', arguments: '{}' }
  const [tool] = await toolsOf(['search_kb'])
  const turn = { agentId: 'agent-1', context: context() }
  expect(gate.deny(call, tool!, turn, 'a rule denies it')).toMatchObject({ outcome: 'denied' })
  await waitUntil(async () => (await auditRecords()).length === 2)
  expect((await auditRecords()).map(({ details }) => details?.reason)).toEqual([
    'a rule denies it',
    'the tool is not available to the agent',
  ])
})

test('S5.9-13 S5.9-14: the next call uses a changed credential value, and a changed reference', async () => {
  const folder = scratchDir()
  const [one, two] = ['one', 'two'].map(name => join(folder, name)) as [string, string]
  writeFileSync(one, 'first-value')
  writeFileSync(two, 'of-another-file')
  const release = { prefix: `file:${folder}/` }
  const config = { runtime: { secretRefs: { allow: [release] } } }
  const { run, id, server, wb, workspaceId, mcpServerId } = await openWithServer(
    ['look'],
    { config },
    {
      credentialRef: `file:${one}`,
    },
  )
  const sent = async () => {
    server.received.length = 0
    expect((await run(id('look'))).outcome).toBe('success')
    return new Set(server.received.map(({ authorization }) => authorization))
  }
  expect(await sent()).toEqual(new Set(['Bearer first-value']))
  writeFileSync(one, 'second-value')
  expect(await sent()).toEqual(new Set(['Bearer second-value']))
  const body = { credentialRef: `file:${two}` }
  await wb.call(mcpServers.update, { params: { workspaceId, mcpServerId }, body })
  expect(await sent()).toEqual(new Set(['Bearer of-another-file']))
})

test('a tool is not called if its server was disabled or deleted in the meantime', async () => {
  const { id, gate, toolsOf, context, wb, workspaceId, mcpServerId, server } = await openWithServer(['look'])
  const [tool] = await toolsOf([id('look')])
  const turn = { agentId: 'agent-1', context: context() }
  const call = () => gate.run({ id: 'call-1', name: id('look'), arguments: '{}' }, tool, turn)
  expect((await call()).outcome).toBe('success')
  const calls = server.received.length
  const params = { workspaceId, mcpServerId }
  await wb.call(mcpServers.update, { params, body: { enabled: false } })
  expect(await call()).toMatchObject({ outcome: 'failure', reason: 'the tool look is no longer offered' })
  await wb.call(mcpServers.delete, { params })
  expect((await call()).outcome).toBe('failure')
  expect(server.received).toHaveLength(calls)
})
