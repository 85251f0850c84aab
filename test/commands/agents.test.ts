import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Agent, agents } from '../../src/contract/agents.ts'
import type { Conversation } from '../../src/contract/conversations.ts'
import { makeConversation, messageRow, writeMessages } from '../harness/agents.ts'
import { makeBase } from '../harness/resources.ts'
import {
  addWorkspaceSandbox,
  type CommandResult,
  createSandbox,
  type TestServer,
  type WorkspaceSandbox,
} from './sandbox.ts'
import { runInFakeTerminal, runInTerminal, stripSequences } from './terminal.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

async function stdoutOf(run: Promise<CommandResult>): Promise<string> {
  const { status, stdout, stderr } = await run
  expect({ status, stderr }).toMatchObject({ status: 0 })
  return stdout.trimEnd()
}

const shared = createSandbox(afterAll)
let server: TestServer
beforeAll(async () => {
  server = await shared.serve()
})
const newWorkspace = () => addWorkspaceSandbox(shared, server)

async function agentNamed({ call, workspaceId }: WorkspaceSandbox, name: string): Promise<Agent> {
  const { items } = await call(agents.list, { params: { workspaceId }, query: {} })
  return items.find(agent => agent.name === name)!
}

const startBobbyConversation = async (sandbox: WorkspaceSandbox, title?: string) =>
  makeConversation(sandbox, await agentNamed(sandbox, 'Bobby'), { title })

describe('wb agents', () => {
  test('lists, creates, shows, changes and deletes agents by name', { timeout: 60_000 }, async () => {
    const sandbox = await newWorkspace()
    const { wb } = sandbox
    const listed = (await stdoutOf(wb(['agents', 'list']))).split('\n').map(line => line.split('\t'))
    expect(listed.map(([, name, , bases, service]) => [name, bases, service])).toEqual([
      ['Bobby', 'all', 'openrouter-gpt-4o-mini'],
      ['Maven', 'all', 'openrouter-gpt-4o-mini'],
    ])
    await makeBase(sandbox, { workspaceId: sandbox.workspaceId, name: 'handbook' })
    const created = await wb([
      'agents',
      'create',
      'clerk',
      ...['--prompt', 'Be brief.', '--kb', 'handbook', '--tool', 'search_kb', '--tool', 'list_kbs'],
    ])
    expect(created).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(uuid.source.replace('$', '\\n$')),
    })
    const agentId = created.stdout.trim()
    expect(created.stderr).toBe('  wb chat clerk\n')
    const bobby = await agentNamed(sandbox, 'Bobby')
    expect(JSON.parse(await stdoutOf(wb(['agents', 'show', 'clerk', '--json'])))).toMatchObject({
      agentId,
      description: null,
      systemPrompt: 'Be brief.',
      llmServiceId: bobby.llmServiceId,
      knowledgeBaseIds: [expect.stringMatching(uuid)],
      toolIds: ['list_kbs', 'search_kb'],
    })
    expect(await stdoutOf(wb(['agents', 'show', 'clerk']))).toContain('tools\tlist_kbs, search_kb\n')

    const change = ['agents', 'update', 'clerk', '--name', 'scribe', '--no-kb', '--no-tool']
    expect(await stdoutOf(wb(change))).toBe(agentId)
    expect(await agentNamed(sandbox, 'scribe')).toMatchObject({ knowledgeBaseIds: [], toolIds: [] })
    expect(await wb(['agents', 'update', 'scribe'])).toMatchObject({ status: 2, stdout: '' })

    await stdoutOf(wb(['agents', 'update', 'scribe', '--rule', 'mcp:*=ask', '--rule', 'native:fetch=deny']))
    expect(await agentNamed(sandbox, 'scribe')).toMatchObject({
      toolRules: { 'mcp:*': { permission: 'ask' }, 'native:fetch': { permission: 'deny' } },
    })
    await stdoutOf(wb(['agents', 'update', 'scribe', '--rule', 'mcp:*=always']))
    expect(await stdoutOf(wb(['agents', 'show', 'scribe']))).toContain('rules\tmcp:*=always\n')
    expect(JSON.parse(await stdoutOf(wb(['agents', 'show', 'scribe', '--json'])))).toMatchObject({
      toolRules: { 'mcp:*': { permission: 'allow', afterReading: 'allow' } },
    })
    expect(await wb(['agents', 'update', 'scribe', '--rule', 'mcp:*=maybe'])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--rule mcp:*=maybe is not NAME=RULE'),
    })
    expect(await stdoutOf(wb(['agents', 'update', 'scribe', '--no-rule']))).toBe(agentId)
    expect(await agentNamed(sandbox, 'scribe')).toMatchObject({ toolRules: {} })

    const settings = ['--temperature', '0.2', '--top-p', '0.9', '--reasoning-effort', 'low', '--stop', 'END']
    await stdoutOf(wb(['agents', 'update', 'scribe', ...settings]))
    const set = { temperature: 0.2, topP: 0.9, reasoningEffort: 'low', stop: ['END'] }
    expect(await agentNamed(sandbox, 'scribe')).toMatchObject(set)
    expect(await wb(['agents', 'update', 'scribe', '--temperature', 'hot'])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--temperature hot is not a number from 0 to 2'),
    })
    await stdoutOf(wb(['agents', 'update', 'scribe', '--no-sampling']))
    expect(await agentNamed(sandbox, 'scribe')).toMatchObject({ temperature: null, stop: null })

    expect(await wb(['agents', 'delete', 'scribe'])).toEqual({
      status: 2,
      stdout: '',
      stderr: '  ✗ This deletes agent scribe with 0 conversations\n    add --yes to skip the confirmation\n',
    })
    expect((await wb(['agents', 'delete', 'scribe', '--yes'])).stderr).toBe(
      '  ✓ deleted agent scribe with 0 conversations\n',
    )
    expect(await wb(['agents', 'show', 'Boby'])).toEqual({
      status: 4,
      stdout: '',
      stderr: '  ✗ No agent is named "Boby" (agent_not_found)\n    did you mean Bobby?\n    wb agents list\n',
    })
  })

  test('creates agents from templates, with the default name or a given one', async () => {
    const sandbox = await newWorkspace()
    const { wb } = sandbox
    const templates = (await stdoutOf(wb(['agents', 'templates'])))
      .split('\n')
      .map(line => line.split('\t')[0])
    expect(templates).toEqual(['bobby', 'maven', 'quill', 'sage'])
    await stdoutOf(wb(['agents', 'create', '--template', 'sage']))
    await stdoutOf(wb(['agents', 'create', 'checker', '-t', 'Sage', '--description', 'ours']))
    const [sage, checker] = [await agentNamed(sandbox, 'Sage'), await agentNamed(sandbox, 'checker')]
    expect(checker).toMatchObject({ systemPrompt: sage.systemPrompt, description: 'ours' })
    expect(sage.llmServiceId).toMatch(uuid)
    expect(await wb(['agents', 'create'])).toEqual({
      status: 2,
      stdout: '',
      stderr: '  ✗ NAME or --template is missing\n    wb agents templates\n',
    })
    expect(await wb(['agents', 'create', '-t', 'sag'])).toMatchObject({
      status: 4,
      stderr: expect.stringContaining('agent_template_not_found'),
    })
  })

  test('lists the tools of the workspace if a tool name is unknown', async () => {
    const { wb } = await newWorkspace()
    const tools = (await stdoutOf(wb(['agents', 'tools']))).split('\n').map(line => line.split('\t'))
    expect(tools.map(([id, name, , source]) => [id, name, source])).toContainEqual([
      'search_kb',
      'search_kb',
      'builtin',
    ])
    expect(await wb(['agents', 'create', 'x', '--tool', 'native:fetch'])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('agent_tool_unresolved'),
    })
  })

  test('offers the available templates in a terminal', async () => {
    const sandbox = createSandbox()
    await stdoutOf(sandbox.wb(['workspaces', 'create', 'demo']))
    const { status, text } = await runInTerminal(sandbox, ['agents', 'create'], {
      answer: seen => (seen.includes('Which template?') ? '\x1b[B\x1b[B\r' : undefined),
    })
    expect(status).toBe(0)
    expect(stripSequences(text)).toContain('✓ created agent Quill')
    const list = await runInFakeTerminal(sandbox, ['agents', 'list'])
    expect(stripSequences(list.text)).toMatch(
      / {2}name +description +knowledge bases +LLM service +updated\n/,
    )
  })
})

describe('wb conversations', () => {
  test('lists, shows and deletes conversations by title', { timeout: 60_000 }, async () => {
    const sandbox = await newWorkspace()
    const { wb, dataDir, workspaceId } = sandbox
    expect(await wb(['conversations', 'list'])).toEqual({
      status: 0,
      stdout: '',
      stderr: `  no conversations in workspace ${sandbox.workspace}\n    wb agents chat\n`,
    })
    const conversation = await startBobbyConversation(sandbox, 'Refund window')
    const { conversationId } = conversation
    const at = { workspaceId, conversationId }
    await writeMessages(dataDir, [
      messageRow(at, 1, { content: 'How long?\nIn days.' }),
      messageRow(at, 2, { role: 'tool', content: null }),
      messageRow(at, 3, { role: 'agent', content: 'Ten \x1b]0;taken\x07days.' }),
    ])
    const line = [conversationId, 'Refund window', 'Bobby', conversation.createdAt].join('\t')
    expect(await stdoutOf(wb(['conversations', 'list']))).toBe(line)
    expect(await stdoutOf(wb(['conversations', 'list', '--agent', 'Bobby']))).toBe(line)
    expect(await stdoutOf(wb(['conversations', 'list', '--agent', 'Maven']))).toBe('')

    const read = (await stdoutOf(wb(['conversations', 'show', 'Refund window']))).split('\n')
    expect(read).toContain('agent\tBobby')
    expect(read.slice(-2).map(row => row.split('\t').slice(1))).toEqual([
      ['user', expect.stringMatching(/^How long\?.In days\.$/)],
      ['agent', expect.stringMatching(/^Ten .*days\.$/)],
    ])
    expect(read.join('')).not.toContain('\x1b')
    const whole = JSON.parse(await stdoutOf(wb(['conversations', 'show', conversationId, '--json']))) as {
      messages: object[]
    }
    expect(whole).toMatchObject({ conversationId, title: 'Refund window' })
    expect(whole.messages).toHaveLength(2)

    expect(await wb(['conversations', 'delete', 'Refund window'])).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('This deletes conversation Refund window with 2 messages'),
    })
    expect((await wb(['agents', 'delete', 'Bobby'])).stderr).toContain('agent Bobby with 1 conversation\n')
    await stdoutOf(wb(['conversations', 'delete', 'Refund window', '--yes']))
    expect(await wb(['conversations', 'show', 'Refund window'])).toMatchObject({
      status: 4,
      stderr: expect.stringContaining('conversation_not_found'),
    })
  })

  test('renames a conversation, and finds it by words of its title', { timeout: 60_000 }, async () => {
    const sandbox = await newWorkspace()
    const { wb } = sandbox
    const { conversationId } = await startBobbyConversation(sandbox, 'how do refunds work')
    await startBobbyConversation(sandbox, 'Other things')
    const renamed = await wb(['conversations', 'rename', 'how do refunds work', '--title', 'Refund window'])
    expect(renamed).toMatchObject({ status: 0, stdout: `${conversationId}\n` })
    const found = await stdoutOf(
      wb(['conversations', 'list', '--search', 'WINDOW refund', '--sort', 'activity']),
    )
    expect(found.split('\t').slice(0, 3)).toEqual([conversationId, 'Refund window', 'Bobby'])
    const none = await wb(['conversations', 'list', '--search', 'how'])
    expect(none).toMatchObject({ status: 0, stdout: '' })
    expect(none.stderr).toMatch(/no conversations with how .*\n.*wb conversations list\n/)
  })

  test('shows messages in a terminal in order, each under the name of its author', async () => {
    const sandbox = await newWorkspace()
    const at = await startBobbyConversation(sandbox)
    await writeMessages(sandbox.dataDir, [
      messageRow(at, 1, { content: 'How long?\n\nIn days.' }),
      messageRow(at, 2, { role: 'agent', content: 'Ten \x1b]0;taken\x07days.' }),
    ])
    const { text } = await runInFakeTerminal(sandbox, ['conversations', 'show'])
    expect(text).not.toContain('\x1b]0;')
    expect(stripSequences(text)).toMatch(
      /\n\n {2}user\n {4}How long\?\n\n {4}In days\.\n\n {2}Bobby\n {4}Ten .*days\.\n$/,
    )
  })

  test('distinguishes conversations with the same title by their start time', async () => {
    const sandbox = await newWorkspace()
    const both = [
      await startBobbyConversation(sandbox, 'Refunds'),
      await startBobbyConversation(sandbox, 'Refunds'),
    ]
    const startedLine = ({ createdAt }: Conversation) => `started ${createdAt}, `
    for (const words of [['export', 'Refunds'], ['show', 'Refunds'], ['export']]) {
      const { status, stderr } = await sandbox.wb(['conversations', ...words])
      const [fact, ...lines] = stderr.trimEnd().split('\n')
      expect([status, fact]).toEqual([2, expect.stringContaining('2 conversations')])
      const line = words.length > 1 ? '    ID  ' : '    wb conversations export ID    '
      const expected = both.map(one => line.replace('ID', one.conversationId) + startedLine(one))
      expect(lines.map(text => text.replace(/[^,]*$/, '').replace(/,$/, ', ')).sort()).toEqual(
        expected.sort(),
      )
    }
  })

  test('exports a conversation as Markdown with footnotes for citations, or as the JSON that show prints', async () => {
    const sandbox = await newWorkspace()
    const { wb, dataDir, workspaceId } = sandbox
    const at = await startBobbyConversation(sandbox, 'Refund window')
    const source = { knowledgeBaseId: workspaceId, documentId: 'd', chunkId: 'd:1', chunkIndex: 1 }
    const cited = { number: 1, ...source, title: 'Refunds', sourceFilename: 'refunds.md', page: null }
    await writeMessages(dataDir, [
      messageRow(at, 1, { content: 'How long?' }),
      messageRow(at, 2, {
        role: 'agent',
        content: 'Ten \x1b]0;taken\x07days [1], see [1](x) and [2].',
        metadata: { finish_reason: 'stop', citations: JSON.stringify([cited]) },
      }),
      messageRow(at, 3, { role: 'agent', content: 'And', metadata: { interrupted: 'true' } }),
    ])
    const text = await stdoutOf(wb(['conversations', 'export', 'Refund window']))
    expect(text.split('\n\n')).toEqual([
      '# Refund window',
      `With Bobby, started ${at.createdAt}.`,
      '## You',
      'How long?',
      '## Bobby',
      'Ten days [^1], see [1](x) and [2].',
      '## Bobby',
      'And',
      '*(interrupted)*',
      '[^1]: Refunds · refunds.md · chunk 1',
    ])
    const json = await stdoutOf(wb(['conversations', 'export', '--format', 'json']))
    expect(JSON.parse(json)).toEqual(JSON.parse(await stdoutOf(wb(['conversations', 'show', '--json']))))
  })
})
