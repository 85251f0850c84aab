import { expect, onTestFinished, test, vi } from 'vitest'
import { startChatServer } from '../fakes/chat-server.ts'
import { addWorkspaceSandbox, createSandbox } from './sandbox.ts'

vi.setConfig({ testTimeout: 60_000 })

test('an agent answers with a server that needs no key, as wb services create reports', async () => {
  const provider = await startChatServer()
  onTestFinished(() => provider.close())
  const sandbox = createSandbox()
  const { wb } = await addWorkspaceSandbox(sandbox, await sandbox.serve())
  const create = ['services', 'create', 'studio', '--type', 'llm', '--provider', 'openai', '--model', 'local']
  const created = await wb([...create, '--endpoint', provider.url])
  expect(created.status, created.stderr).toBe(0)
  expect(created.stderr).not.toContain('!')

  expect((await wb(['agents', 'update', 'Maven', '--llm', 'studio'])).status).toBe(0)
  provider.respond(() => ({ text: 'An answer of the server.' }))
  const answered = await wb(['ask', 'why?', '--agent', 'maven'])
  expect(answered).toMatchObject({ status: 0, stdout: expect.stringContaining('An answer of the server.') })
  expect(provider.received.length).toBeGreaterThan(0)
  for (const { headers } of provider.received) expect(headers).not.toHaveProperty('authorization')
})

test('create, show, ask and wb doctor name an unusable service and the missing setting', async () => {
  const sandbox = createSandbox()
  const { wb } = await addWorkspaceSandbox(sandbox, await sandbox.serve())
  const lacks = 'LLM service "gateway" (openai) has no credential, and api.openai.com requires one'
  const hint =
    'Set its credentialRef, for example with: wb services update gateway --credential env:OPENAI_API_KEY'
  const create = ['services', 'create', 'gateway', '--type', 'llm', '--provider', 'openai', '--model', 'm']
  const created = await wb(create)
  expect(created).toMatchObject({ status: 0, stderr: expect.stringContaining(`  ! ${lacks}\n    ${hint}\n`) })
  expect((await wb(['services', 'show', 'gateway'])).stdout).toContain(`${lacks}. ${hint}`)
  const shown = await wb(['services', 'show', 'gateway', '--json'])
  expect(JSON.parse(shown.stdout).problem).toEqual({ message: lacks, hint })
  const changed = await wb(['services', 'update', 'gateway', '--description', 'ours'])
  expect(changed).toMatchObject({ status: 0, stderr: expect.stringContaining(`  ! ${lacks}\n`) })

  await wb(['agents', 'update', 'Maven', '--llm', 'gateway'])
  const answer = await wb(['ask', 'why?', '--agent', 'maven'])
  expect(answer).toMatchObject({
    status: 0,
    stderr: expect.stringContaining(`  no model is available: ${lacks}\n  ${hint}\n`),
  })
  const whole = await wb(['ask', 'why?', '--agent', 'maven', '--json'])
  expect(JSON.parse(whole.stderr).error).toMatchObject({
    message: lacks,
    hint: expect.stringContaining(hint),
  })

  const doctor = (await wb(['doctor'])).stdout.split('\n').map(line => line.split('\t'))
  const [line] = doctor.filter(([name, state]) => name === 'llm' && state === 'warning')
  expect(line?.[2]).toBe(lacks)
  expect(line?.[3]).toMatch(/^wb services show gateway --type llm --workspace /)
})

test('show names the problem of an embedding or reranking service', async () => {
  const sandbox = createSandbox()
  const { wb } = await addWorkspaceSandbox(sandbox, await sandbox.serve())
  for (const type of ['embedding', 'reranking']) {
    const dimension = type === 'embedding' ? ['--dimension', '8'] : []
    const model = ['--provider', 'cohere', '--model', 'm', ...dimension]
    const created = await wb(['services', 'create', type, '--type', type, ...model])
    expect(created.stderr).toContain('has no credential')
    expect((await wb(['services', 'show', type])).stdout).toMatch(/^problem\t.*has no credential/m)
  }
})
