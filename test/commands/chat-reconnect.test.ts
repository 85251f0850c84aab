import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { Message } from '../../src/contract/conversations.ts'
import { type ChatServer, startChatServer } from '../fakes/chat-server.ts'
import { startChat } from './chat-terminal.ts'
import { createSandbox, type Sandbox, type TestServer } from './sandbox.ts'

const text = 'The first half ends here. The second half follows.'
const firstHalf = 'The first half'

interface ChatThroughProxy {
  readonly sandbox: Sandbox
  readonly model: ChatServer
  readonly server: TestServer
  /** Breaks the connections between the chat and the runtime. */
  cut(): void
}

/** Starts a server whose model pauses in its answer until `release`, and a proxy between the chat and the server. */
async function chatThroughProxy(): Promise<ChatThroughProxy> {
  const sandbox = createSandbox()
  const model = await startChatServer()
  onTestFinished(() => model.close())
  model.respond(({ body }) => (body.stream ? { text, silentAfter: 4 } : undefined))
  for (const line of [
    'quickstart',
    `services create fake --type llm --provider ollama --model llama3.2 --endpoint ${model.url}`,
    'agents update Maven --llm fake',
  ]) {
    const { status, stderr } = await sandbox.wb(line.split(' '))
    expect(status, stderr).toBe(0)
  }
  const server = await sandbox.serve()
  const { url, cut } = await proxyTo(Number(new URL(server.url).port))
  sandbox.env.WB_URL = url
  return { sandbox, model, server, cut }
}

async function proxyTo(port: number): Promise<{ url: string; cut: () => void }> {
  const sockets = new Set<Socket>()
  const proxy = createServer(client => {
    const upstream = connect(port, '127.0.0.1')
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from)
      from.on('error', () => {})
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
      from.pipe(to)
    }
  })
  await new Promise<void>(done => proxy.listen(0, '127.0.0.1', done))
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  onTestFinished(() => {
    proxy.close()
    cut()
  })
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, cut }
}

async function messagesOf(sandbox: Sandbox): Promise<Message[]> {
  const { stdout } = await sandbox.wb(['conversations', 'show', '--json'])
  return (JSON.parse(stdout) as { messages: Message[] }).messages
}

function countIn(lines: readonly string[], words: string): number {
  return lines.join(' ').replace(/\s+/g, ' ').split(words).length - 1
}

test('an answer continues after its connection breaks, and is shown once', { timeout: 60_000 }, async () => {
  const { sandbox, model, cut } = await chatThroughProxy()
  const { type, shows, lines, ended } = startChat(sandbox, ['maven'])
  await shows('ask Maven')
  type('tell me\r')
  await shows(firstHalf)
  cut()
  await shows('reconnecting…')
  model.release()
  await shows('second half follows.')
  await shows('/help')
  expect(countIn(lines(), text)).toBe(1)
  expect(countIn(lines(), firstHalf)).toBe(1)
  type('/quit\r')
  expect(await ended).toBe(0)
  expect((await messagesOf(sandbox)).map(({ content }) => content)).toEqual(['tell me', text])
})

test('a chat shows the running answer of the conversation that it continues', {
  timeout: 60_000,
}, async () => {
  const { sandbox, model } = await chatThroughProxy()
  const first = startChat(sandbox, ['maven'])
  await first.shows('ask Maven')
  first.type('tell me\r')
  await first.shows(firstHalf)
  first.kill()
  await first.ended
  const { type, shows, lines, ended } = startChat(sandbox, ['maven', '--continue'])
  await shows('you    tell me')
  await shows(firstHalf)
  model.release()
  await shows('second half follows.')
  await shows('/help')
  expect(countIn(lines(), text)).toBe(1)
  expect(countIn(lines(), 'you tell me')).toBe(1)
  type('\x04')
  expect(await ended).toBe(0)
  const again = startChat(sandbox, ['maven', '--continue'])
  await again.shows('second half follows.')
  await again.shows('/help')
  expect(countIn(again.lines(), text)).toBe(1)
})

test.each([
  ['ctrl+c', '\x03'],
  ['ctrl+d', '\x04'],
  ['/quit', '/quit\r'],
])(
  '%s stops the answer in the runtime, and the partial text is stored',
  { timeout: 60_000 },
  async (_name, keys) => {
    const { sandbox } = await chatThroughProxy()
    const { type, shows, ended } = startChat(sandbox, ['maven'])
    await shows('ask Maven')
    type('tell me\r')
    await shows(firstHalf)
    type(keys)
    if (keys === '\x03') {
      await shows('stopped')
      type('\x03')
    }
    expect(await ended).toBe(0)
    const [, answer] = await messagesOf(sandbox)
    expect(answer).toMatchObject({
      content: expect.stringContaining(firstHalf),
      metadata: { interrupted: 'true' },
    })
  },
)

test('alt+left and alt+right switch between versions of the last question', { timeout: 60_000 }, async () => {
  const { sandbox, model } = await chatThroughProxy()
  model.respond(({ body }) => (body.stream ? { text: 'An answer.' } : undefined))
  const { type, shows, ended } = startChat(sandbox, ['maven'])
  await shows('ask Maven')
  type('tell me\r')
  await shows('/help')
  await shows('An answer.')
  await shows('/help')
  type('/retry\r')
  await shows('restores the earlier version')
  await shows('/help')
  type('\x1b[1;3D')
  await shows('version 1 of 2')
  type('\x1b[1;3D')
  await shows('this is the first of 2 versions')
  type('\x1b[1;3C')
  await shows('version 2 of 2')
  type('\x04')
  expect(await ended).toBe(0)
})

test('/branch edits an earlier question, and both branches remain accessible', {
  timeout: 60_000,
}, async () => {
  const { sandbox, model } = await chatThroughProxy()
  model.respond(({ body }) => {
    const question = (body.messages as { content: string }[] | undefined)?.at(-1)?.content
    return body.stream ? { text: `answer to ${question}` } : undefined
  })
  const { type, shows, ended } = startChat(sandbox, ['maven'])
  await shows('ask Maven')
  const ask = async (text: string, question: string) => {
    type(`${text}\r`)
    await shows(`answer to ${question}`)
    await shows('/help')
  }
  await ask('one', 'one')
  await ask('two', 'two')
  type('/branch\r')
  await shows('Questions to edit and ask again')
  type('\x1b[A\r')
  await shows('your message will replace this question')
  await ask(' changed', 'one changed')
  await ask('three', 'three')
  const contents = async () => (await messagesOf(sandbox)).map(({ content }) => content)
  const changed = ['one changed', 'answer to one changed', 'three', 'answer to three']
  expect(await contents()).toEqual(changed)

  type('\x1b[1;3D')
  await shows('version 1 of 2')
  await shows('answer to two')
  expect(await contents()).toEqual(['one', 'answer to one', 'two', 'answer to two'])
  type('/versions\r')
  await shows('Versions of questions')
  await shows('one changed')
  type('q')
  type('/versions 2\r')
  await shows('answer to three')
  expect(await contents()).toEqual(changed)
  type('\x04')
  expect(await ended).toBe(0)
})
