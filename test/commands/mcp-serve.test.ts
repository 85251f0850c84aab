import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { expect, onTestFinished, test } from 'vitest'
import { connect } from '../../src/contract/connect.ts'
import { call } from '../mcp/mcp-setup.ts'
import { type Sandbox, sandboxFactory } from './sandbox.ts'

const bin = resolve('bin/run.js')

const notes = sandboxFactory(async ({ wb, home }) => {
  writeFileSync(join(home, 'wings.md'), 'The ornithopter flaps its wings.\n')
  await wb(['workspaces', 'create', 'demo'])
  await wb(['kb', 'ingest', 'notes', join(home, 'wings.md'), '--create'])
})

/** Starts `wb mcp serve` through the official client, and collects its stderr. */
async function startClient({ env, home }: Sandbox, ...args: string[]) {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [bin, 'mcp', 'serve', ...args],
    env,
    cwd: home,
    stderr: 'pipe',
  })
  let stderr = ''
  transport.stderr?.on('data', part => {
    stderr += String(part)
  })
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(transport)
  onTestFinished(() => client.close())
  return { client, stderrText: () => stderr }
}

async function baseOf(client: Client): Promise<string> {
  const bases = (await call(client, 'list_knowledge_bases')).value as { knowledgeBaseId: string }[]
  return bases[0]!.knowledgeBaseId
}

test('a client reads without a running server, and writes where permitted', { timeout: 60_000 }, async () => {
  const sandbox = await notes()
  const { client, stderrText } = await startClient(sandbox)
  const { tools } = await client.listTools()
  expect(tools.map(({ name }) => name)).toEqual([
    'list_knowledge_bases',
    'list_agents',
    'get_agent',
    'list_documents',
    'get_document',
    'search_kb',
    'list_services',
    'list_chats',
    'list_chat_messages',
  ])
  const knowledgeBaseId = await baseOf(client)
  const hits = await call(client, 'search_kb', { knowledgeBaseId, text: 'ornithopter' })
  expect(hits.value).toMatchObject([{ content: expect.stringContaining('flaps its wings') }])
  const text = { knowledgeBaseId, text: 'Gliders do not flap.' }
  expect(await call(client, 'ingest_text', text)).toMatchObject({
    isError: true,
    value: { outcome: 'denied', code: 'scope_required', required: 'write:ingest', subjectScopes: [] },
  })
  expect((await call(client, 'later_tool')).text).toBe('MCP error -32602: Tool later_tool not found')

  const writer = (await startClient(sandbox, '--allow', 'write:ingest')).client
  expect((await writer.listTools()).tools).toHaveLength(11)
  expect(await call(writer, 'ingest_text', text)).toMatchObject({ value: { outcome: 'completed' } })
  expect(await call(writer, 'delete_knowledge_base', { knowledgeBaseId })).toMatchObject({
    value: { outcome: 'denied', required: 'write:kb', subjectScopes: ['write:ingest'] },
  })
  expect((await call(client, 'list_documents', { knowledgeBaseId })).value).toHaveLength(2)
  expect(stderrText()).toBe('')
})

test('uses the permissions of its key through a server, and the server audits its calls', {
  timeout: 60_000,
}, async () => {
  const sandbox = await notes()
  const { url } = await sandbox.serve()
  const { client } = await startClient(sandbox, '--allow', 'write:ingest', '--url', url)
  expect(await call(client, 'list_documents', { knowledgeBaseId: await baseOf(client) })).toMatchObject({
    isError: false,
  })
  const { stdout } = await sandbox.wb(['audit', 'list', '--json', '--jq', '.[].details.toolName'])
  expect(stdout).toContain('list_documents')
})

test('a client stays connected while wb serve starts, moves to another port and ends', {
  timeout: 60_000,
}, async () => {
  const sandbox = await notes()
  const { client } = await startClient(sandbox)
  const { stdout } = await sandbox.wb(['workspaces', 'list', '--json'])
  const [{ workspaceId }] = JSON.parse(stdout) as [{ workspaceId: string }]
  await baseOf(client)
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    const server = await sandbox.spawnServe()
    await baseOf(client)
    const { entries } = await server.call(connect.traffic, { params: { workspaceId }, query: {} })
    expect(entries).toHaveLength(1)
    server.process.kill(signal)
    await server.ended
  }
  expect(await baseOf(client)).toEqual(expect.any(String))
})

/** Starts a process, and exchanges raw lines with it. */
function startRawProcess({ env, home }: Sandbox) {
  const child = spawn(process.execPath, [bin, 'mcp', 'serve'], { cwd: home, env })
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    stdout += text
  })
  const ended = new Promise<number | null>(done => child.on('close', done))
  return {
    child,
    ended,
    answers: () =>
      stdout
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line) as Record<string, unknown>),
  }
}

test('rejects invalid messages, and ends when stdin ends and every request is answered', async () => {
  const sandbox = await notes()
  const { child, ended, answers } = startRawProcess(sandbox)
  const list = { jsonrpc: '2.0', id: 'a', method: 'tools/list' }
  const batch = [{ ...list, method: 'tools/call', params: { name: 'delete_document' } }]
  for (const line of ['{', JSON.stringify(batch), '', JSON.stringify(list), '{"jsonrpc":"2.0","method":"x"}'])
    child.stdin.write(`${line}\n`)
  child.stdin.end(JSON.stringify({ ...list, id: {} }))
  expect(await ended).toBe(0)
  const answered = answers()
  expect(answered.find(({ id }) => id === 'a')).toMatchObject({ result: { tools: expect.any(Array) } })
  const refused = answered.filter(({ id }) => id === null)
  expect(refused).toMatchObject([-32_700, -32_600, -32_600].map(code => ({ error: { code } })))
  expect(answered).toHaveLength(4)
})

test('ends on Ctrl-C', async () => {
  const { child, ended, answers } = startRawProcess(await notes())
  const ready = new Promise(done => child.stdout.once('data', done))
  child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
  await ready
  child.kill('SIGINT')
  expect(await ended).toBe(0)
  expect(answers()).toMatchObject([{ id: 1, result: {} }])
})

test("install prints the entry for a client, and adds it to the client's existing configuration", async () => {
  const { wb, home, dataDir } = await notes()
  const entry = {
    command: 'wb',
    args: ['mcp', 'serve', '-w', 'demo', '--allow', 'write:kb', '--data-dir', dataDir],
  }
  const printed = await wb(['mcp', 'install', '--allow', 'write:kb'])
  expect(JSON.parse(printed.stdout)).toEqual({ mcpServers: { 'workbase-demo': entry } })
  const code = await wb(['mcp', 'install', 'vscode', '--allow', 'write:kb'])
  expect(JSON.parse(code.stdout)).toEqual({ servers: { 'workbase-demo': { type: 'stdio', ...entry } } })

  const path = join(home, '.cursor', 'mcp.json')
  const install = ['mcp', 'install', 'cursor', '--allow', 'write:kb', '--write']
  const env = { WB_API_KEY: 'wb_live_secret_of_mine' }
  mkdirSync(join(home, '.cursor'))
  const other = { theme: 'dark', mcpServers: { other: { command: 'x' } } }
  writeFileSync(path, JSON.stringify(other))
  expect(await wb(install, { env })).toMatchObject({ status: 2, stderr: expect.stringContaining(path) })
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(other)
  expect(await wb([...install, '--yes'], { env })).toMatchObject({ status: 0 })
  const written = readFileSync(path, 'utf8')
  expect(JSON.parse(written)).toEqual({
    ...other,
    mcpServers: { ...other.mcpServers, 'workbase-demo': entry },
  })
  expect(written).not.toContain('secret')
  expect(await wb(install)).toMatchObject({
    status: 0,
    stderr: expect.stringContaining('already contains the entry'),
  })
  writeFileSync(path, '{ // mine\n}')
  expect(await wb([...install, '--yes'])).toMatchObject({ status: 2 })
  expect(statSync(path).size).toBe(11)
  expect(await wb(['mcp', 'install', '--write'])).toMatchObject({ status: 2 })
})

test('install --local writes a command that uses this machine, regardless of the profile', async () => {
  const { wb } = await notes()
  const printed = await wb(['mcp', 'install', '--local'], { env: { WB_URL: 'http://127.0.0.1:1' } })
  const { mcpServers } = JSON.parse(printed.stdout) as { mcpServers: Record<string, { args: string[] }> }
  expect(mcpServers['workbase-demo']!.args).toContain('--local')
})

test('install writes the command that started it', async () => {
  const { home, env } = await notes()
  const linked = (...folder: string[]) => {
    mkdirSync(join(home, ...folder), { recursive: true })
    symlinkSync(bin, join(home, ...folder, 'wb'))
    return join(home, ...folder)
  }
  const global = linked('bin')
  const project = linked('project', 'node_modules', '.bin')
  const npx = linked('_npx', '1', 'node_modules', '.bin')
  const other = join(home, 'other')
  mkdirSync(other)
  writeFileSync(join(other, 'wb'), '#!/bin/sh\n', { mode: 0o755 })
  const start = (program: string, ...folders: string[]) => {
    const PATH = [...folders, process.env.PATH].join(delimiter)
    const options = { cwd: home, env: { ...env, PATH }, encoding: 'utf8' } as const
    const { stdout } = spawnSync(process.execPath, [program, 'mcp', 'install'], options)
    const { mcpServers } = JSON.parse(stdout) as {
      mcpServers: Record<string, { command: string; args: string[] }>
    }
    const { command, args } = mcpServers['workbase-demo']!
    return [command, ...args.slice(0, args.indexOf('mcp'))]
  }
  expect(start(join(global, 'wb'), global)).toEqual(['wb'])
  expect(start(join(global, 'wb'))).toEqual([process.execPath, bin])
  expect(start(bin, other, global)).toEqual([process.execPath, bin])
  expect(start(join(project, 'wb'), project)).toEqual([process.execPath, bin])
  expect(start(join(npx, 'wb'), npx)).toEqual(['npx', '-y', 'workbase'])
})
