import { expect, test } from 'vitest'
import { ModelDetails } from '../../../src/models/chat/model-details.ts'
import type { Outbound } from '../../../src/models/outbound.ts'
import { TestClock } from '../../harness/runtime.ts'

/** Reads model details from a provider with a JSON response, and records its requests. */
function detailsFrom(answer: unknown, status = 200) {
  const requests: { url: string; body: string | null; headers: object }[] = []
  const clock = new TestClock()
  const outbound: Outbound = async (url, { body, headers }) => {
    requests.push({ url: url.href, body, headers })
    const bytes = Buffer.from(JSON.stringify(answer))
    return {
      status,
      headers: new Headers(),
      body: (async function* () {
        yield bytes
      })(),
    }
  }
  return { details: new ModelDetails({ clock, outbound }), clock, requests }
}

const ollama = { provider: 'ollama', modelName: 'm', endpoint: new URL('http://localhost:11434/v1') }
const llama = { 'general.architecture': 'llama', 'llama.context_length': 131_072 }

test.each([
  [
    'a configured window',
    { parameters: 'stop "x"\nnum_ctx                        16384\n', model_info: llama },
    16_384,
  ],
  ['a window that may be smaller than trained for', { model_info: llama }, null],
  ['a small window', { model_info: { ...llama, 'llama.context_length': 2_048 } }, 2_048],
  ['nothing', {}, null],
])('reads %s of an Ollama model', async (_what, answer, contextTokens) => {
  const { details, requests } = detailsFrom(answer)
  expect(details.get(ollama)).toBeUndefined()
  details.request(ollama)
  await expect
    .poll(() => details.get(ollama))
    .toEqual({ contextTokens, supportsTools: null, supportsImages: null })
  expect(requests).toMatchObject([{ url: 'http://localhost:11434/api/show', body: '{"model":"m"}' }])
})

test.each([
  [['completion', 'tools'], true],
  [['completion'], false],
])('detects if an Ollama model supports tools: %j', async (capabilities, supportsTools) => {
  const { details } = detailsFrom({ capabilities })
  details.request(ollama)
  await expect.poll(() => details.get(ollama)?.supportsTools).toBe(supportsTools)
})

test.each([
  [['completion', 'vision'], true],
  [['completion'], false],
])('detects if an Ollama model supports images: %j', async (capabilities, supportsImages) => {
  const { details } = detailsFrom({ capabilities })
  details.request(ollama)
  await expect.poll(() => details.get(ollama)?.supportsImages).toBe(supportsImages)
})

test.each([
  [['text', 'image'], true],
  [['text'], false],
])('detects if an OpenRouter model supports images: %j', async (modalities, supportsImages) => {
  const place = {
    provider: 'openrouter',
    modelName: 'a/b',
    endpoint: new URL('https://openrouter.ai/api/v1'),
  }
  const { details } = detailsFrom({ data: [{ id: 'a/b', architecture: { input_modalities: modalities } }] })
  details.request(place)
  await expect.poll(() => details.get(place)?.supportsImages).toBe(supportsImages)
})

test('reads a model from the OpenRouter list without a credential', async () => {
  const place = {
    provider: 'openrouter',
    modelName: 'a/b',
    endpoint: new URL('https://openrouter.ai/api/v1'),
  }
  const { details, requests } = detailsFrom({
    data: [
      { id: 'a/a', context_length: 1 },
      { id: 'a/b', context_length: 32_768, supported_parameters: ['temperature', 'tools'] },
    ],
  })
  details.request(place)
  await expect
    .poll(() => details.get(place))
    .toEqual({
      contextTokens: 32_768,
      supportsTools: true,
      supportsImages: null,
    })
  expect(requests).toMatchObject([{ url: 'https://openrouter.ai/api/v1/models' }])
  expect(requests[0]!.headers).not.toHaveProperty('authorization')
})

test('sends no requests to other servers', () => {
  const { details, requests } = detailsFrom({})
  details.request({ ...ollama, provider: 'openai' })
  details.request({ ...ollama, provider: 'openrouter' })
  expect(requests).toEqual([])
})

test('requests model details once an hour, also if the provider rejects the request', async () => {
  const { details, requests, clock } = detailsFrom({}, 404)
  details.request(ollama)
  details.request(ollama)
  await new Promise(setImmediate)
  details.request(ollama)
  expect(requests).toHaveLength(1)
  clock.advance(3_600_000)
  details.request(ollama)
  expect(requests).toHaveLength(2)
})
