import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { type ConfigEnvironment, createEnvironment } from '../../../src/config/config-environment.ts'
import { readManagedEnv, writeManagedEnv } from '../../../src/config/managed-env.ts'
import { configSchema } from '../../../src/config/schema.ts'
import type { LlmService } from '../../../src/contract/services.ts'
import type { ChatModel } from '../../../src/models/chat/chat-model.ts'
import { type Models, openModels } from '../../../src/models/open.ts'
import { type ChatServer, startChatServer } from '../../fakes/chat-server.ts'
import { scratchDir } from '../../harness/runtime.ts'

let provider: ChatServer
beforeEach(async () => {
  provider = await startChatServer()
})
afterEach(() => provider.close())

const messages = [{ role: 'user', content: 'Hi' }] as const

function open(chat: object, environment: ConfigEnvironment = createEnvironment({})): Models {
  const models = openModels({
    config: configSchema.parse({ version: 1, chat }),
    clock: systemClock,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    dataDir: scratchDir(),
    environment,
    isReleased: async () => false,
    outbound: undefined,
    resolve: undefined,
  })
  onTestFinished(() => models.close())
  return models
}

async function keyOf(model: ChatModel | undefined): Promise<string | undefined> {
  await model!.chat.complete(messages, { maxTokens: 8, signal: new AbortController().signal })
  return provider.received.at(-1)?.headers.authorization
}

describe('the model of the configuration', () => {
  test('uses its key without a release', async () => {
    const chat = {
      provider: 'openai',
      baseUrl: provider.url,
      tokenRef: 'env:KEY',
      model: 'm',
      maxOutputTokens: 9,
    }
    const model = open(chat, createEnvironment({ KEY: 'sk-own' })).runtimeChat()
    expect(model).toMatchObject({ provider: 'openai', model: 'm', maxTokens: 9, contextWindowTokens: null })
    expect(await keyOf(model)).toBe('Bearer sk-own')
    expect(provider.received[0]?.body.model).toBe('m')
  })

  test('requires no key for Ollama', async () => {
    expect(await keyOf(open({ provider: 'ollama', baseUrl: provider.url }).runtimeChat())).toBeUndefined()
  })

  test('requires no key on your own server if tokenRef is null', async () => {
    const chat = { provider: 'openai', baseUrl: provider.url, tokenRef: null }
    expect(await keyOf(open(chat).runtimeChat())).toBeUndefined()
  })

  test.each([
    [
      'is switched off',
      { enabled: false, tokenRef: 'env:KEY' },
      /chat\.enabled is false in the configuration$/,
    ],
    ['lacks its key', { tokenRef: 'env:NOPE' }, /env:NOPE is not set$/],
    ['names no key at a hosted provider', { tokenRef: null }, /openrouter\.ai needs a key$/],
  ])('is unavailable with a message if it %s', (_what, chat, words) => {
    const { runtimeChat } = open(chat, createEnvironment({ KEY: 'sk-own' }))
    expect(runtimeChat).toThrow(
      expect.objectContaining({ code: 'chat_disabled', message: expect.stringMatching(words) }),
    )
  })
})

test('a service overrides settings of the configuration', () => {
  const models = open({ maxOutputTokens: 77 })
  const service = {
    name: 'talks',
    provider: 'ollama',
    modelName: 'm',
    maxOutputTokens: null,
    contextWindowTokens: 8_192,
    supportsTools: false,
  } as LlmService
  const known = { provider: 'ollama', model: 'm', contextWindowTokens: 8_192, supportsTools: false }
  expect(models.openChat(service)).toMatchObject({ ...known, maxTokens: 77 })
  expect(models.openChat({ ...service, maxOutputTokens: 5 })).toMatchObject({ ...known, maxTokens: 5 })
  expect(() => models.openChat({ ...service, provider: 'huggingface' })).toThrow(
    expect.objectContaining({ code: 'llm_provider_unsupported' }),
  )
})

test('S5.9-12: a changed key behind a reference applies after a restart', async () => {
  const chat = { provider: 'openai', baseUrl: provider.url, tokenRef: 'env:OPENAI_API_KEY' }
  const folder = scratchDir()
  const started = () => open(chat, createEnvironment({}, readManagedEnv(folder)))
  writeManagedEnv(folder, new Map([['OPENAI_API_KEY', 'sk-old']]))
  const before = started()
  expect(await keyOf(before.runtimeChat())).toBe('Bearer sk-old')
  writeManagedEnv(folder, new Map([['OPENAI_API_KEY', 'sk-new']]))
  expect(await keyOf(before.runtimeChat())).toBe('Bearer sk-old')
  expect(await keyOf(started().runtimeChat())).toBe('Bearer sk-new')
})
