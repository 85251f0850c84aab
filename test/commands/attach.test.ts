import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type ChatServer, startChatServer } from '../fakes/chat-server.ts'
import type { SentMessage } from '../fakes/chat-template.ts'
import { imageBytes, imageOf, imagePart } from '../harness/images.ts'
import { startChat } from './chat-terminal.ts'
import { createSandbox, type Sandbox } from './sandbox.ts'

/** A data directory whose agent Maven answers with a fake model. */
async function sandboxWithAgent(): Promise<Sandbox & { model: ChatServer }> {
  const sandbox = createSandbox()
  const model = await startChatServer()
  onTestFinished(() => model.close())
  for (const line of [
    'kb create handbook',
    `services create fake --type llm --provider ollama --model llama3.2 --endpoint ${model.url}`,
    'agents update Maven --llm fake',
  ]) {
    const { status, stderr } = await sandbox.wb(line.split(' '))
    expect(status, stderr).toBe(0)
  }
  writeFileSync(join(sandbox.home, 'contract.md'), 'Refunds are paid within 14 days.')
  writeFileSync(join(sandbox.home, 'annex.txt'), 'Cash is paid out on Fridays.')
  return { ...sandbox, model }
}

async function conversationsIn(sandbox: Sandbox): Promise<object[]> {
  return JSON.parse((await sandbox.wb(['conversations', 'list', '--json'])).stdout) as object[]
}

test('wb ask --attach answers from files with citations, and the conversation lists the files', {
  timeout: 60_000,
}, async () => {
  const sandbox = await sandboxWithAgent()
  sandbox.model.respond(({ body }) => (body.stream ? { text: 'Within 14 days [1].' } : undefined))
  const answer = await sandbox.wb([
    'ask',
    ...['--attach', 'contract.md', '--attach', join(sandbox.home, 'annex.txt')],
    'when are refunds paid?',
  ])
  expect(answer).toMatchObject({
    status: 0,
    stdout: 'Within 14 days [1].\n\n[1] contract.md · chunk 0\n',
  })
  const [system] = sandbox.model.received.find(({ body }) => body.stream)!.body.messages as SentMessage[]
  expect(system!.content).toContain('Refunds are paid within 14 days.')
  expect(system!.content).toContain('Cash is paid out on Fridays.')
  expect((await sandbox.wb(['conversations', 'show'])).stdout).toContain(
    'attachments\tcontract.md, annex.txt\n',
  )
  const shown = JSON.parse((await sandbox.wb(['conversations', 'show', '--json'])).stdout) as {
    attachments: object[]
  }
  expect(shown.attachments).toMatchObject([{ filename: 'contract.md' }, { filename: 'annex.txt' }])
  const exported = await sandbox.wb(['conversations', 'export'])
  expect(exported.stdout).toContain('[^1]: contract.md · chunk 0')

  const next = await sandbox.wb(['ask', '--continue', 'and in cash?'])
  expect(next.stdout).toContain('[1] contract.md')
  expect(await conversationsIn(sandbox)).toHaveLength(1)
})

test('wb ask fails before it creates a conversation if a file cannot be attached', {
  timeout: 60_000,
}, async () => {
  const sandbox = await sandboxWithAgent()
  writeFileSync(join(sandbox.home, 'image.png'), Buffer.from([0x89, 0x50, 0, 1]))
  expect(await sandbox.wb(['ask', '--attach', 'missing.md', 'why?'])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('"missing.md" cannot be read: file or folder not found'),
  })
  expect(await sandbox.wb(['ask', '--attach', sandbox.home, 'why?'])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('it is not a file'),
  })
  const refused = await sandbox.wb(['ask', '--attach', 'contract.md', '--attach', 'image.png', 'why?'])
  expect(refused.status).not.toBe(0)
  expect(refused.stderr).toContain('unsupported_file_type')
  expect(await conversationsIn(sandbox)).toEqual([])
})

test('deletes a conversation with attachments if no model can answer its first question', {
  timeout: 60_000,
}, async () => {
  const sandbox = await sandboxWithAgent()
  const { status, stderr } = await sandbox.wb([
    'services',
    'create',
    'keyless',
    '--type',
    'llm',
    '--provider',
    'openai',
    '--model',
    'm',
  ])
  expect(status, stderr).toBe(0)
  await sandbox.wb(['agents', 'update', 'Maven', '--llm', 'keyless'])
  const answer = await sandbox.wb(['ask', '--attach', 'contract.md', 'when are refunds paid?'])
  expect(answer.stderr).toContain('no model is available')
  expect(await conversationsIn(sandbox)).toEqual([])
})

test('a chat sends images and attaches files, and keeps both if the question is rejected', {
  timeout: 60_000,
}, async () => {
  const sandbox = await sandboxWithAgent()
  const { model } = sandbox
  model.respond(({ body }) => (body.stream ? { text: 'Within 14 days [1].' } : undefined))
  model.describe({ capabilities: ['completion'] })
  writeFileSync(join(sandbox.home, 'my shot.png'), imageBytes())

  const first = startChat(sandbox, ['maven'])
  await first.shows('ask Maven')
  // The runtime checks what the model accepts when it answers the first question.
  first.type('hello\r')
  await first.shows('11 tokens')
  first.type('/new\r')
  await first.shows('new conversation')
  first.type('/image missing.png\r')
  await first.shows('"missing.png" cannot be read: there is no such file')
  first.type('/image contract.md\r')
  await first.shows('"contract.md" is not an image in a supported format')
  first.type('/image "my shot.png"\r')
  await first.shows('[image: my shot.png]')
  first.type('/attach missing.md\r')
  await first.shows('"missing.md" cannot be read: file or folder not found')
  first.type('/attach contract.md\r')
  await first.shows('attached contract.md, 32 characters')
  first.type('when are refunds paid?\r')
  await first.shows('cannot read images (llm_model_no_images)')
  await first.shows('[image: my shot.png]')
  await first.shows('│ when are refunds paid?')
  first.type('\x03\x03')
  expect(await first.ended).toBe(0)

  model.describe({ capabilities: ['completion', 'vision'] })
  const second = startChat(sandbox, ['maven', '--continue'])
  await second.shows('ask Maven')
  second.type('/attach\r')
  await second.shows('contract.md, 32 characters')
  second.type('q')
  second.type('/image ~/my\\ shot.png\r')
  await second.shows('[image: my shot.png]')
  second.type('when are refunds paid?\r')
  await second.shows('[1] contract.md · chunk 0')
  const { messages } = model.received.findLast(({ body }) => body.stream)!.body
  expect(JSON.stringify(messages)).toContain(JSON.stringify(imagePart(imageOf())))
  second.type('\x1b1')
  await second.shows('Refunds are paid within 14 days.')
  second.type('q')
  second.type('/quit\r')
  expect(await second.ended).toBe(0)

  const third = startChat(sandbox, ['maven', '--continue'])
  await third.shows('[image 1: image/png, 64 B]')
  third.type('\x04')
  expect(await third.ended).toBe(0)
})
