import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startChatServer } from '../fakes/chat-server.ts'
import { startChat } from './chat-terminal.ts'
import { createSandbox } from './sandbox.ts'

async function sandboxWithModel() {
  const sandbox = createSandbox()
  const model = await startChatServer()
  onTestFinished(() => model.close())
  mkdirSync(join(sandbox.home, 'docs'))
  const topics = ['refund', 'parcel', 'password']
  for (const topic of topics)
    writeFileSync(
      join(sandbox.home, 'docs', `${topic}.md`),
      `The ${topic} is handled by the office on the second floor, which is open from nine to five on working days.\n`,
    )
  model.respond(({ line, body }) => {
    if (!line.endsWith('/chat/completions')) return undefined
    const prompt = JSON.stringify(body.messages)
    const topic = topics.find(name => prompt.includes(`The ${name} is`))
    return { text: `"Who handles the ${topic}: \\\\ us?"\nSure.` }
  })
  for (const line of [
    'kb ingest handbook docs --create',
    `services create fake --type llm --provider ollama --model llama3.2 --endpoint ${model.url}`,
    'agents update Maven --llm fake',
  ]) {
    const { status, stderr } = await sandbox.wb(line.split(' '))
    expect(status, stderr).toBe(0)
  }
  return { ...sandbox, model }
}

test('adds questions of a model to a file that wb eval run reads, each only once', async () => {
  const { wb, home } = await sandboxWithModel()
  const generate = (...flags: string[]) =>
    wb(['eval', 'generate', 'q.yaml', '-k', 'handbook', '--yes', ...flags])
  expect(await generate('--count', '2')).toMatchObject({
    status: 0,
    stderr: expect.stringContaining('✓ added 2 questions to q.yaml'),
  })
  expect((await generate()).stderr).toContain('added 1 question to q.yaml')
  expect((await generate()).stderr).toContain('added 0 questions to q.yaml')
  expect(readFileSync(join(home, 'q.yaml'), 'utf8')).toContain('- question: "Who handles the refund')
  const { stdout, stderr } = await wb(['eval', 'run', 'q.yaml', '-k', 'handbook', '--json'])
  expect(stderr).toBe('')
  const { questions } = JSON.parse(stdout) as { questions: { rank: number }[] }
  expect(questions.map(({ rank }) => rank)).toEqual([1, 1, 1])
})

test('in a terminal, a person accepts, edits or skips each question', async () => {
  const sandbox = await sandboxWithModel()
  const terminal = startChat(sandbox, ['generate', 'q.yaml', '-k', 'handbook'], { command: 'eval' })
  const down = '\x1b[B'
  await terminal.shows('Who handles')
  await terminal.shows('stop')
  terminal.type('\r')
  await terminal.shows('Who handles')
  await terminal.shows('Who handles')
  await terminal.shows('stop')
  terminal.type(`${down}\r`)
  await terminal.shows('Question:')
  terminal.type('who is it\r')
  await terminal.shows('Who handles')
  await terminal.shows('stop')
  terminal.type(`${down}${down}\r`)
  await terminal.shows('added 2 questions to q.yaml')
  expect(await terminal.ended).toBe(0)
  const text = readFileSync(join(sandbox.home, 'q.yaml'), 'utf8')
  expect(text.match(/^- question: .*$/gm)).toEqual([
    expect.stringContaining('Who handles'),
    '- question: "who is it"',
  ])
})

test('needs a terminal without --yes', async () => {
  const { wb } = createSandbox()
  expect(await wb(['eval', 'generate', 'q.yaml'])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('add --yes to accept all questions'),
  })
})
