import { describe, expect, test, vi } from 'vitest'
import { agents } from '../../../src/contract/agents.ts'
import { conversations, type Message } from '../../../src/contract/conversations.ts'
import { imageMediaTypes } from '../../../src/contract/images.ts'
import { limits } from '../../../src/contract/limits.ts'
import { llmServices } from '../../../src/contract/services.ts'
import { workspaces } from '../../../src/contract/workspaces.ts'
import { type ChatServer, refusals } from '../../fakes/chat-server.ts'
import { serveOverHttp } from '../../harness/http-runtime.ts'
import { imageBytes, imageOf, imagePart } from '../../harness/images.ts'
import { storeFile } from '../../harness/store-file.ts'
import { eventData, eventNames, openTestChat, type TestChat } from '../../harness/test-chat.ts'

interface ModelMessage {
  readonly role: string
  readonly content: unknown
}

/** Returns the user messages of the last request to the model. */
function lastUserMessages({ received }: ChatServer): unknown[] {
  const messages = received.at(-1)!.body.messages as ModelMessage[]
  return messages.filter(({ role }) => role === 'user').map(({ content }) => content)
}

function imageRows({ dataDir }: TestChat): number {
  return storeFile(dataDir).all('SELECT 1 FROM message_images').length
}

async function messagesOf({ send, path }: TestChat): Promise<Message[]> {
  return (await send(`GET ${path}/messages`)).body.items as Message[]
}

/** Creates a conversation whose first question has an image. */
async function createWithImage(...options: Parameters<typeof openTestChat>) {
  const chat = await openTestChat(...options)
  const events = await chat.stream('what is this?', { images: [imageOf()] })
  expect(eventNames(events).at(-1)).toBe('done')
  return { chat, question: eventData(events, 'user-message')[0]! }
}

/** Creates a conversation with an image, and a model that is known not to support images. */
async function createWithoutImageSupport() {
  const { chat, question } = await createWithImage()
  chat.model.describe({ capabilities: ['completion'] })
  const { workspaceId } = chat.agent
  const service = { name: 'blind', provider: 'ollama', modelName: 'b:7b', endpointBaseUrl: chat.model.url }
  const { llmServiceId } = await chat.call(llmServices.create, { params: { workspaceId }, body: service })
  await chat.stream('hi', { llmServiceId })
  const other = await chat.startConversation()
  await vi.waitFor(async () => {
    const sent = { content: 'see?', images: [imageOf()], llmServiceId }
    const { status } = await chat.send(`POST ${other.path}/messages`, sent)
    expect(status).toBe(422)
  })
  return { chat, question, llmServiceId }
}

test('the model receives the images after the text, and the message describes them', async () => {
  const chat = await openTestChat()
  const images = imageMediaTypes.map((type, at) => imageOf(type, 100 + at))
  const events = await chat.stream('what are these?', { images })
  expect(lastUserMessages(chat.model)).toEqual([
    [{ type: 'text', text: 'what are these?' }, ...images.map(imagePart)],
  ])
  const described = imageMediaTypes.map((mediaType, index) => ({ index, mediaType, bytes: 100 + index }))
  expect(eventData(events, 'user-message')[0]!.images).toEqual(described)
  const [question, answer] = await messagesOf(chat)
  expect(question!.images).toEqual(described)
  expect(answer).not.toHaveProperty('images')
})

test('an image is returned unchanged, with headers that make browsers only display it', async () => {
  const { chat, question } = await createWithImage()
  const { url } = await serveOverHttp(chat)
  const answer = await fetch(`${url}${chat.path}/messages/${question.messageId}/images/0`)
  expect(answer.status).toBe(200)
  expect(Buffer.from(await answer.arrayBuffer())).toEqual(imageBytes())
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'content-type': 'image/png',
    'content-disposition': 'inline',
    'cache-control': 'private',
    'x-content-type-options': 'nosniff',
  })
})

test('a missing image is reported with its own error code', async () => {
  const { chat, question } = await createWithImage()
  const { status, body } = await chat.send(`GET ${chat.path}/messages/${question.messageId}/images/1`)
  expect({ status, body }).toMatchObject({ status: 404, body: { error: { code: 'chat_image_not_found' } } })
})

describe('a message with invalid images is rejected and not stored', () => {
  const png = imageOf()
  const cases: [what: string, images: unknown, message: string][] = [
    ['five images', Array(5).fill(png), 'images: '],
    ['no list', png, 'images: '],
    ['another type', [{ ...png, mediaType: 'image/svg+xml' }], 'images.0.mediaType: '],
    [
      'the wrong type',
      [png, { ...png, mediaType: 'image/gif' }],
      'images.1.data: must be an image of the type image/gif',
    ],
    [
      'no image',
      [{ ...png, data: Buffer.from('hello').toString('base64') }],
      'images.0.data: must be an image',
    ],
    ['nothing', [{ ...png, data: '' }], 'images.0.data: must be an image'],
    ['no data', [{ mediaType: 'image/png' }], 'images.0.data: is required'],
    ['white space', [{ ...png, data: `${png.data}\n` }], 'images.0.data: must be base64'],
    ['URL-safe base64', [{ ...png, data: `${png.data.slice(0, -4)}-_==` }], 'images.0.data: must be base64'],
    ['no padding', [{ ...png, data: png.data.replace(/=+$/, '') }], 'images.0.data: must be base64'],
    [
      'a byte too many',
      [imageOf('image/png', limits.imageBytes + 1)],
      'images.0.data: must have at most 5000000',
    ],
  ]
  test.each(cases)('%s', async (_, images, message) => {
    const chat = await openTestChat()
    const { status, body } = await chat.send(`POST ${chat.path}/messages`, { content: 'hi', images })
    expect({ status, body }).toMatchObject({ status: 400, body: { error: { code: 'validation_error' } } })
    expect((body.error as { message: string }).message.startsWith(message)).toBe(true)
    expect(await messagesOf(chat)).toEqual([])
    expect(chat.model.received).toEqual([])
  })
})

describe('image messages over HTTP', () => {
  test('four images of the largest size arrive whole', { timeout: 60_000 }, async () => {
    const chat = await openTestChat({ threads: true })
    const { send } = await serveOverHttp(chat)
    const images = [...'abcd'].map(fill => imageOf('image/jpeg', limits.imageBytes, fill))
    const { status } = await send(`POST ${chat.path}/messages`, { content: 'compare', images })
    expect(status).toBe(201)
    const [parts] = lastUserMessages(chat.model) as [object[]]
    // Comparing megabytes of text through `toEqual` takes seconds if they differ.
    expect(JSON.stringify(parts.slice(1)) === JSON.stringify(images.map(imagePart))).toBe(true)
  })

  test('only message routes accept bodies of this size', async () => {
    const chat = await openTestChat()
    const { send } = await serveOverHttp(chat)
    const padding = (bytes: number) => ({ content: 'hi', title: null, ignored: 'x'.repeat(bytes) })
    const statusOf = async (line: string, bytes: number) => (await send(line, padding(bytes))).status
    expect(await statusOf(`POST ${chat.path}/messages`, limits.messageBodyBytes)).toBe(413)
    expect(await statusOf(`POST ${chat.path}/messages`, limits.jsonBodyBytes)).toBe(201)
    expect(await statusOf(`PATCH ${chat.path}`, limits.jsonBodyBytes)).toBe(413)
  })

  test('the memory of a body stays counted while its turn streams', async () => {
    const bodyMemory = { totalBytes: 50_000_000, perCallerBytes: 50_000_000 }
    const chat = await openTestChat({ config: { runtime: { bodyMemory } } })
    const { url, send } = await serveOverHttp(chat)
    chat.model.script({ text: 'one two three', silentAfter: 3 })
    const images = Array(4).fill(imageOf('image/png', limits.imageBytes))
    const body = JSON.stringify({ content: 'look', images })
    const request = { method: 'POST', body, headers: { 'content-type': 'application/json' } }
    const first = await fetch(`${url}${chat.path}/messages/stream`, request)
    const reader = first.body!.pipeThrough(new TextDecoderStream()).getReader()
    for (let text = ''; !text.includes('event: token'); ) text += (await reader.read()).value
    const other = await chat.startConversation()
    expect((await send(`POST ${other.path}/messages`, { content: 'look', images })).status).toBe(503)
    chat.model.release()
    while (!(await reader.read()).done);
    expect((await send(`POST ${other.path}/messages`, { content: 'look', images })).status).toBe(201)
  })
})

describe('in later turns', () => {
  test('images of earlier questions are sent again', async () => {
    const { chat } = await createWithImage()
    await chat.stream('and its color?')
    expect(lastUserMessages(chat.model)).toEqual([
      [{ type: 'text', text: 'what is this?' }, imagePart(imageOf())],
      'and its color?',
    ])
  })

  test('a request has at most eight images, the newest ones', async () => {
    const chat = await openTestChat({ service: { contextWindowTokens: 200_000 } })
    const four = (fill: string) => Array(4).fill(imageOf('image/png', 64, fill))
    await chat.stream('one', { images: four('1') })
    await chat.stream('two', { images: four('2') })
    await chat.stream('three', { images: four('3') })
    const parts = (text: string, fill: string) => [{ type: 'text', text }, ...four(fill).map(imagePart)]
    expect(lastUserMessages(chat.model)).toEqual([
      'one\n\n[4 images are left out here.]',
      parts('two', '2'),
      parts('three', '3'),
    ])
  })

  test('images that do not fit into the context window are left out, and the text stays', async () => {
    const { chat } = await createWithImage({ service: { contextWindowTokens: 3_000, maxOutputTokens: 500 } })
    await chat.stream('and its color?')
    expect(lastUserMessages(chat.model)).toEqual([
      'what is this?\n\n[1 image is left out here.]',
      'and its color?',
    ])
  })
})

describe('versions of a question', () => {
  test('an edited question has the images in its request, and the earlier version keeps its own', async () => {
    const { chat, question } = await createWithImage()
    await chat.stream('what is that?', { replaces: question.messageId })
    expect(lastUserMessages(chat.model)).toEqual(['what is that?'])
    const [edited] = await messagesOf(chat)
    expect(edited).not.toHaveProperty('images')
    const earlier = `${chat.path}/messages/${question.messageId}`
    expect((await chat.send(`GET ${earlier}/images/0`)).status).toBe(200)
    await chat.send(`POST ${earlier}/select`)
    await chat.stream('and its color?')
    expect(lastUserMessages(chat.model)[0]).toEqual([
      { type: 'text', text: 'what is this?' },
      imagePart(imageOf()),
    ])
  })

  test('the images of a version that fails can be read', async () => {
    const { chat, question } = await createWithImage()
    chat.model.script({ status: 400, body: {} })
    const images = [imageOf('image/gif')]
    const [version] = eventData(
      await chat.stream('again', { replaces: question.messageId, images }),
      'user-message',
    )
    const { status, headers } = await chat.send(`GET ${chat.path}/messages/${version!.messageId}/images/0`)
    expect([status, headers.get('content-type')]).toEqual([200, 'image/gif'])
  })
})

describe('a model without image support', () => {
  test('rejects images before anything is stored if its provider reports the limitation in advance', async () => {
    const { chat, llmServiceId } = await createWithoutImageSupport()
    const before = await messagesOf(chat)
    const requestsBefore = chat.model.received.length
    const sent = { content: 'see?', images: [imageOf()], llmServiceId }
    const { status, body } = await chat.send(`POST ${chat.path}/messages`, sent)
    expect({ status, body }).toMatchObject({ status: 422, body: { error: { code: 'llm_model_no_images' } } })
    const events = await chat.stream('see?', { images: [imageOf()], llmServiceId })
    expect(events).toMatchObject([
      { event: 'stream-error', data: { code: 'llm_model_no_images', status: 422 } },
    ])
    expect(await messagesOf(chat)).toEqual(before)
    expect(chat.model.received).toHaveLength(requestsBefore)
  })

  test('continues a conversation without its images', async () => {
    const { chat, llmServiceId } = await createWithoutImageSupport()
    const events = await chat.stream('and its color?', { llmServiceId })
    expect(eventNames(events).at(-1)).toBe('done')
    expect(lastUserMessages(chat.model)).toEqual([
      'what is this?\n\n[1 image is left out here.]',
      'hi',
      'and its color?',
    ])
  })

  const refusal = { status: 400, body: { error: { message: 'this model does not support image input' } } }

  test('ends the turn with the reason of its provider, which is cached', async () => {
    const chat = await openTestChat()
    chat.model.script(refusal)
    const events = await chat.stream('what is this?', { images: [imageOf()] })
    expect(eventNames(events)).toEqual(['user-message', 'error'])
    const { error_message: reason } = eventData(events, 'error')[0]!.metadata
    expect(reason).toContain('cannot read images')
    expect(reason).toContain('Use a model that reads images, or send the question without images.')
    const { status } = await chat.send(`POST ${chat.path}/messages`, { content: 'hi', images: [imageOf()] })
    expect(status).toBe(422)
    expect(eventNames(await chat.stream('never mind')).at(-1)).toBe('done')
    expect(lastUserMessages(chat.model)).toEqual([
      'what is this?\n\n[1 image is left out here.]',
      'never mind',
    ])
  })

  test('is called again without the images of earlier questions that it rejects', async () => {
    const { chat } = await createWithImage()
    chat.model.script(refusal, { text: 'It was red.' })
    const events = await chat.stream('and its color?')
    expect(eventData(events, 'done')[0]!.content).toBe('It was red.')
    expect(lastUserMessages(chat.model)).toEqual([
      'what is this?\n\n[1 image is left out here.]',
      'and its color?',
    ])
  })
})

describe('images are deleted', () => {
  const deletions = {
    conversation: ({ call, conversation }: TestChat) => call(conversations.delete, { params: conversation }),
    agent: ({ call, agent }: TestChat) => call(agents.delete, { params: agent }),
    workspace: ({ call, agent }: TestChat) => call(workspaces.delete, { params: agent }),
  }
  test.each(Object.entries(deletions))('with their %s', async (_, remove) => {
    const { chat } = await createWithImage()
    expect(imageRows(chat)).toBe(1)
    await remove(chat)
    expect(imageRows(chat)).toBe(0)
  })

  test('with a question that the provider refuses', async () => {
    const chat = await openTestChat()
    chat.model.script(refusals.notChat)
    const sent = { content: 'hi', images: [imageOf()] }
    expect((await chat.send(`POST ${chat.path}/messages`, sent)).status).toBe(422)
    expect(imageRows(chat)).toBe(0)
  })
})
