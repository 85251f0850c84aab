import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { llmServices } from '../../src/contract/services.ts'
import { startChatServer } from '../fakes/chat-server.ts'
import { storeFile } from '../harness/store-file.ts'
import { addWorkspaceSandbox, type CommandResult, createSandbox, type TestServer } from './sandbox.ts'
import { runInTerminal, stripSequences } from './terminal.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[48][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

async function stdoutOf(run: Promise<CommandResult>): Promise<string> {
  const { status, stdout, stderr } = await run
  expect({ status, stderr }).toMatchObject({ status: 0 })
  return stdout.trimEnd()
}

const shared = createSandbox(afterAll)
let server: TestServer
beforeAll(async () => {
  server = await shared.serve([], { env: { TEAM_KEY: 'sk-team-0123456789' } })
})
const newWorkspace = (fields?: Parameters<typeof addWorkspaceSandbox>[2]) =>
  addWorkspaceSandbox(shared, server, fields)

test('a knowledge base gets and loses a reranking service', async () => {
  const { wb } = await newWorkspace()
  const saved = JSON.parse(
    await stdoutOf(
      wb(['services', 'create', 'rr', '--type', 'reranking', '--provider', 'tei', '--model', 'm', '--json']),
    ),
  )
  const id = saved.rerankingServiceId
  const serviceOf = async (...args: string[]) =>
    JSON.parse(await stdoutOf(wb(['kb', ...args, '--json']))).rerankingServiceId
  expect(await serviceOf('create', 'notes', '--reranking', id)).toBe(id)
  expect(await serviceOf('create', 'papers', '--reranking', 'rr')).toBe(id)
  expect(await serviceOf('update', 'papers', '--reranking', '')).toBeNull()
  expect(await serviceOf('update', 'papers', '--reranking', 'rr')).toBe(id)
  expect(await stdoutOf(wb(['kb', 'show', 'papers']))).toContain('reranking\trr\n')
  expect((await wb(['kb', 'create', 'more', '--chunking', 'missing'])).stderr).toContain('missing')
})

test('creates, shows, changes and deletes a service of each type', { timeout: 60_000 }, async () => {
  const { wb } = await newWorkspace()
  const flags = {
    chunking: ['--engine', 'langchain_ts', '--strategy', 'line', '--max-size', '4', '--overlap', '0'],
    embedding: ['--provider', 'mock', '--model', 'm', '--dimension', '8', '--metric', 'dot'],
    reranking: ['--provider', 'cohere', '--model', 'rerank-v3.5', '--set', 'returnScores=true'],
    llm: [
      '--provider',
      'ollama',
      '--model',
      'llama3.1',
      '--max-tokens',
      '64',
      '--temperature',
      '0.2',
      '--stop',
      'END',
      '--endpoint',
      'http://o.test/v1',
    ],
  }
  const createFlags = {
    chunking: { engine: 'langchain_ts', strategy: 'line', maxChunkSize: 4, overlapSize: 0 },
    embedding: { provider: 'mock', modelName: 'm', embeddingDimension: 8, distanceMetric: 'dot' },
    reranking: { provider: 'cohere', modelName: 'rerank-v3.5', returnScores: true },
    llm: {
      provider: 'ollama',
      modelName: 'llama3.1',
      maxOutputTokens: 64,
      temperature: 0.2,
      stop: ['END'],
      endpointBaseUrl: 'http://o.test/v1',
    },
  }
  const ids: string[] = []
  for (const [type, own] of Object.entries(flags)) {
    const id = await stdoutOf(wb(['services', 'create', `my-${type}`, '--type', type, ...own]))
    expect(id).toMatch(uuid)
    ids.push(id)
  }
  const listed = await stdoutOf(wb(['services', 'list']))
  const rows = Object.keys(flags).map((type, at) => `${type}\t${ids[at]}\tmy-${type}\t`)
  for (const row of rows) expect(listed).toContain(row)
  expect(await stdoutOf(wb(['services', 'list', '--type', 'embedding']))).toMatch(/^(embedding\t.*\n?)+$/)
  expect(await wb(['services', 'delete', 'my-llm'])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('--yes'),
  })
  for (const [at, type] of Object.keys(flags).entries()) {
    const patch = ['--description', 'ours', '--set', 'requestTimeoutMs=1500', '--name', `our-${type}`]
    expect(await stdoutOf(wb(['services', 'update', ids[at]!, ...patch]))).toBe(ids[at])
    const shown = await stdoutOf(wb(['services', 'show', `our-${type}`, '--json']))
    expect(JSON.parse(shown)).toMatchObject({
      name: `our-${type}`,
      description: 'ours',
      requestTimeoutMs: 1500,
      ...createFlags[type as keyof typeof createFlags],
    })
    const deleted = await wb(['services', 'delete', `our-${type}`, '--yes'])
    expect(deleted).toMatchObject({ status: 0, stderr: expect.stringContaining(`our-${type}`) })
    const missing = await wb(['services', 'show', `our-${type}`, '--type', type])
    expect(missing).toMatchObject({ status: 4, stderr: expect.stringContaining(`${type}_service_not_found`) })
  }
})

test('presets match the contract, and flags override them', { timeout: 60_000 }, async () => {
  const { wb } = await newWorkspace({ kind: 'mock' })
  const createService = async (...args: string[]) =>
    JSON.parse(await stdoutOf(wb(['services', 'create', ...args, '--json'])))
  expect(await createService('--preset', 'recursive-char-500')).toMatchObject({
    name: 'recursive-char-500',
    maxChunkSize: 500,
    minChunkSize: 50,
    overlapSize: 75,
  })
  expect(await createService('wide', '--preset', 'recursive-char-4000', '--overlap', '600')).toMatchObject({
    name: 'wide',
    maxChunkSize: 4000,
    minChunkSize: 250,
    overlapSize: 600,
  })
  expect(await createService('--preset', 'cohere-embed-v4-multilingual')).toMatchObject({
    provider: 'cohere',
    modelName: 'embed-v4.0',
    embeddingDimension: 1024,
    credentialRef: 'env:COHERE_API_KEY',
    maxBatchSize: 96,
    maxInputTokens: 512,
  })
  expect(await createService('--preset', 'openrouter-text-embedding-3-small')).toMatchObject({
    endpointBaseUrl: 'https://openrouter.ai/api/v1',
    embeddingDimension: 1536,
  })
  const unknown = await wb(['services', 'create', '--preset', 'recursive-char-5'])
  expect(unknown).toMatchObject({ status: 2, stderr: expect.stringContaining('recursive-char-500') })
  const inherited = await wb(['services', 'create', '--preset', 'toString'])
  expect(inherited).toMatchObject({ status: 2, stderr: expect.stringContaining('no preset "toString"') })
  const other = await wb(['services', 'create', '--type', 'llm', '--preset', 'passages'])
  expect(other).toMatchObject({ status: 2, stderr: expect.stringContaining('--type chunking') })
})

test('lists the models of a provider, or a built-in list with a note if it does not respond', async () => {
  const provider = await startChatServer()
  try {
    const line = ['services', 'models', '--provider', 'ollama', '--endpoint', provider.url]
    expect(await stdoutOf(createSandbox().wb(line))).toBe('a:3b\ta:3b\t\tfalse\nb:7b\tb:7b\t\tfalse')
  } finally {
    await provider.close()
  }
  const { wb } = await newWorkspace()
  const known = ['services', 'models', '--provider', 'openai', '--limit', '1', '--json']
  const { stdout, stderr } = await wb(known)
  expect(JSON.parse(stdout)).toEqual([
    { id: 'gpt-4o-mini', name: 'gpt-4o-mini', supportsTools: true, recommended: true },
  ])
  expect(stderr).toContain('built-in list: OpenAI does not list its models')
  expect(stderr).toContain('  --model accepts any other')
  const unreached = ['services', 'models', '--provider', 'ollama', '--endpoint', 'http://127.0.0.1:9']
  const { stderr: silent } = await wb(unreached)
  expect(silent).toContain('built-in list: Ollama did not return its models')
  expect(silent).toMatch(/\n {2}ollama serve .*--endpoint URL/)
})

describe('a missing or unsuitable argument in a pipe is a usage error that names the flag', () => {
  test.each([
    [['create'], '--type is missing'],
    [['create', 'x', '--type', 'llm', '--provider', 'ollama'], '--model is missing'],
    [['create', 'x', '--type', 'embedding', '--provider', 'mock', '--model', 'm'], '--dimension is missing'],
    [['create', 'x', '--type', 'llm', '--engine', 'x', '--dimension', '4'], '--dimension does not apply to'],
    [
      ['create', 'x', '--type', 'llm', '--provider', 'olama', '--model', 'm'],
      'did you mean --provider ollama?',
    ],
    [
      ['create', 'x', '--type', 'llm', '--provider', 'acme', '--model', 'm'],
      'providers: openrouter, openai, ollama',
    ],
    [
      ['create', 'x', '--type', 'embedding', '--provider', 'opnai', '--model', 'm', '--dimension', '4'],
      '--provider openai?',
    ],
    [['update', 'passages'], 'o change was requested'],
    [['update', 'passages', '--set', 'nothing'], 'FIELD=VALUE'],
    [['allow', 'env:KEY'], '--host is missing'],
  ])('%j', async (args, words) => {
    const { wb } = await newWorkspace()
    const { status, stderr } = await wb(['services', ...args])
    expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining(words) })
  })
})

test('stores an unknown provider that has an endpoint, because another runtime may support it', async () => {
  const { wb } = await newWorkspace()
  const flags = ['--type', 'llm', '--provider', 'acme', '--model', 'm', '--endpoint', 'http://127.0.0.1:9']
  expect(await wb(['services', 'create', 'x', ...flags])).toMatchObject({ status: 0 })
})

test('Ctrl-C during a model request is an interruption, also within a command', {
  timeout: 60_000,
}, async () => {
  const provider = await startChatServer()
  try {
    const sandbox = createSandbox()
    sandbox.env.TEAM_KEY = 'sk-team-0123456789'
    await stdoutOf(
      sandbox.wb(['services', 'allow', 'env:TEAM_KEY', '--host', provider.host, '--as-operator']),
    )
    provider.script({ hang: true })
    const flags = ['--provider', 'openai', '--endpoint', provider.url, '--credential', 'env:TEAM_KEY']
    const create = ['services', 'create', 'talks', '--type', 'llm', '--model', 'm', ...flags]
    const keys = ['\u0003']
    const screen = await runInTerminal(sandbox, create, {
      answer: () => (provider.received.length > 0 ? keys.pop() : undefined),
    })
    expect(screen.status, screen.text).toBe(130)
    expect(stripSequences(screen.text)).toContain('✗ interrupted')
    expect(storeFile(sandbox.dataDir).tablesContaining('talks')).toEqual([])
  } finally {
    await provider.close()
  }
})

test('only the owner can allow and disallow a secret, also while a server runs', {
  timeout: 60_000,
}, async () => {
  const provider = await startChatServer()
  try {
    const { wb, workspace } = await newWorkspace()
    const flags = ['--provider', 'openai', '--endpoint', provider.url, '--credential', 'env:TEAM_KEY']
    const make = (name: string) => wb(['services', 'create', name, '--type', 'llm', '--model', 'm', ...flags])
    const line = `wb services allow env:TEAM_KEY --host ${provider.host}`
    const refused = (await make('talks')).stderr
    expect(refused).toContain(line)
    expect(refused).toContain('  wb agents update NAME --llm talks    makes an agent use it\n')
    expect(provider.received).toEqual([])

    const allow = ['services', 'allow', 'env:TEAM_KEY', '--host', provider.host]
    const stranger = await wb(allow)
    expect(stranger).toMatchObject({ status: 3, stderr: expect.stringContaining('--as-operator') })
    expect(stranger.stderr).not.toContain('WB_API_KEY')
    expect(await stdoutOf(wb([...allow, '--workspace', workspace, '--as-operator']))).toMatch(uuid)
    expect((await wb([...allow, '--workspace', workspace, '--as-operator'])).stderr).toContain('already')
    await stdoutOf(wb(['agents', 'delete', 'Bobby', '--yes']))
    expect((await make('speeches')).stderr).toContain('  wb agents update Maven --llm speeches ')
    expect(provider.received).toHaveLength(1)

    const listed = await stdoutOf(wb(['services', 'releases', '--as-operator']))
    expect(listed).toContain(`\tenv:TEAM_KEY\t${provider.host}\t`)
    await stdoutOf(wb(['services', 'disallow', 'env:TEAM_KEY', '--as-operator']))
    await make('lectures')
    expect(provider.received).toHaveLength(1)
    expect((await wb(['services', 'releases', '--as-operator'])).stdout).not.toContain('env:TEAM_KEY')
  } finally {
    await provider.close()
  }
})

test('prompts for the model of a custom endpoint, because the provider lists other models', {
  timeout: 60_000,
}, async () => {
  const sandbox = await newWorkspace()
  const flags = ['--type', 'llm', '--provider', 'openai', '--endpoint', 'http://127.0.0.1:9/v1']
  let isAsked = false
  const { status, text } = await runInTerminal(sandbox, ['services', 'create', 'own', ...flags], {
    answer(shown) {
      if (isAsked || !stripSequences(shown).includes('Model:')) return undefined
      isAsked = true
      return 'tiny\r'
    },
  })
  expect(status, text).toBe(0)
  expect(await stdoutOf(sandbox.wb(['services', 'show', 'own', '--jq', '.modelName']))).toBe('tiny')
})

test('an error about a missing service names no type', async () => {
  const { wb } = await newWorkspace()
  const { status, stderr } = await wb(['services', 'show', 'nosuch'])
  expect([status, stderr]).toEqual([
    4,
    '  ✗ No service is named "nosuch" (not_found)\n    wb services list\n',
  ])
})

test('prompts for every setting in a terminal, with choices, and offers to allow the secret', {
  timeout: 60_000,
}, async () => {
  const sandbox = await newWorkspace()
  const down = '\u001b[B'
  const answers: [RegExp, string][] = [
    [/Which type of service\?/, `${down.repeat(3)}\r`],
    [/Which preset\?/, `${down}\r`],
    [/Which provider\?/, `${down}\r`],
    [/Which model\?/, '\r'],
  ]
  const { status, text } = await runInTerminal(sandbox, ['services', 'create', 'asked'], {
    answer(shown) {
      if (!answers[0]?.[0].test(shown)) return undefined
      return answers.shift()![1]
    },
  })
  expect(status, text).toBe(0)
  expect(stripSequences(text)).toContain('LLM service asked')
  const { items } = await sandbox.call(llmServices.list, {
    params: { workspaceId: sandbox.workspaceId },
    query: {},
  })
  expect(items.find(({ name }) => name === 'asked')).toMatchObject({
    provider: 'openai',
    modelName: 'gpt-4o-mini',
  })

  const flags = ['--type', 'llm', '--provider', 'openai', '--model', 'm', '--credential', 'env:ASKED_KEY']
  const offered = await runInTerminal(sandbox, ['services', 'create', 'offered', ...flags, '--as-operator'], {
    answer: shown => (/send env:ASKED_KEY to api\.openai\.com\?/.test(shown) ? 'y\r' : undefined),
  })
  expect(stripSequences(offered.text)).toContain('released env:ASKED_KEY for api.openai.com')
  expect(await stdoutOf(sandbox.wb(['services', 'releases', '--as-operator']))).toContain('env:ASKED_KEY')

  const refused = await runInTerminal(sandbox, ['services', 'create', 'refused', ...flags], {
    answer: shown => (/send env:ASKED_KEY to api\.openai\.com\?/.test(shown) ? 'y\r' : undefined),
  })
  expect(refused.status).toBe(0)
  expect(stripSequences(refused.text)).toContain('--as-operator')
})
