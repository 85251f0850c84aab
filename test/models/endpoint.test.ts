import { expect, test } from 'vitest'
import { createEnvironment } from '../../src/config/config-environment.ts'
import {
  type EndpointSettings,
  parseEndpoint,
  resolveCredential,
  resolveEndpoint,
} from '../../src/models/endpoint.ts'

function settings(
  service: Partial<EndpointSettings['service']> = {},
  more: Partial<EndpointSettings> = {},
): EndpointSettings {
  return {
    service: {
      name: 'main',
      provider: 'openai',
      modelName: 'm',
      workspaceId: 'w',
      endpointBaseUrl: null,
      endpointPath: null,
      credentialRef: null,
      requestTimeoutMs: null,
      ...service,
    },
    provider: 'openai',
    environment: createEnvironment({ KEY: 'secret', SPACED: 'two words', EMPTY: '' }),
    isReleased: async (_ref, host) => host === 'api.openai.com',
    createFailure: (source, reason, facts) => new Error(`${source} ${reason} ${facts?.hint}`),
    path: '/chat/completions',
    ...more,
  }
}

test.each([
  ['the default', {}, {}, 'https://api.openai.com/v1'],
  ['a base URL', { endpointBaseUrl: 'https://a.example//' }, {}, 'https://a.example/'],
  [
    'a path',
    { endpointBaseUrl: 'https://a.example/', endpointPath: '/api/v2/' },
    {},
    'https://a.example/api/v2',
  ],
  [
    'the whole URL',
    { endpointBaseUrl: 'https://a.example/v1/chat/completions/' },
    {},
    'https://a.example/v1',
  ],
  ['Ollama', {}, { provider: 'ollama' }, 'http://localhost:11434/v1'],
  [
    'OLLAMA_BASE_URL',
    {},
    { provider: 'ollama', environment: createEnvironment({ OLLAMA_BASE_URL: 'http://gpu:1' }) },
    'http://gpu:1/v1',
  ],
  [
    'OLLAMA_BASE_URL for another provider',
    {},
    { environment: createEnvironment({ OLLAMA_BASE_URL: 'http://gpu:1' }) },
    'https://api.openai.com/v1',
  ],
] as const)('resolves %s', (_name, service, more, url) => {
  expect(resolveEndpoint(settings(service, more)).href).toBe(url)
})

test('only Ollama gets a default path', () => {
  expect(parseEndpoint('http://a.example', 'ollama', '/x').href).toBe('http://a.example/v1')
  expect(parseEndpoint('http://a.example/api', 'ollama', '/x').href).toBe('http://a.example/api')
  expect(parseEndpoint('http://a.example', 'openai', '/x').href).toBe('http://a.example/')
})

test('names the setting that is not a URL', () => {
  const ollama = { provider: 'ollama', environment: createEnvironment({ OLLAMA_BASE_URL: 'gpu' }) } as const
  expect(() => resolveEndpoint(settings({}, ollama))).toThrow(
    /endpoint .*OLLAMA_BASE_URL must be.*Correct OLLAMA_BASE_URL/,
  )
  expect(() => resolveEndpoint(settings({ endpointBaseUrl: 'a' }))).toThrow(
    /endpointBaseUrl must be.*Check endpointBaseUrl/,
  )
})

const openai = new URL('https://api.openai.com/v1')
const other = new URL('https://a.example/v1')

test.each([
  ['a released secret', 'env:KEY', openai, 'secret'],
  ['no credential at another host', null, other, undefined],
])('resolves %s', async (_name, credentialRef, endpoint, secret) => {
  expect(await resolveCredential(settings({ credentialRef }), endpoint)).toBe(secret)
})

test.each([
  [
    'no credential',
    null,
    openai,
    /has no credential, and api.openai.com requires one.*update main --credential env:OPENAI_API_KEY/,
  ],
  [
    'a secret that is not released',
    'env:KEY',
    other,
    /not released for a.example.*allow env:KEY --host a.example/,
  ],
  ['an odd reference', 'file:/a b', other, /allow REF --host HOST/],
  ['an unencrypted host', 'env:KEY', new URL('http://api.openai.com'), /without encryption/],
  ['a secret with a space', 'env:SPACED', openai, /characters that are not allowed in a header/],
  ['an unset variable', 'env:NONE', openai, /cannot use its credential: env:NONE is not set.*Set NONE/],
] as const)('rejects %s [security rule 1]', async (_name, credentialRef, endpoint, message) => {
  await expect(resolveCredential(settings({ credentialRef }), endpoint)).rejects.toThrow(message)
})

test('suggests a placeholder for a name with special characters', async () => {
  await expect(resolveCredential(settings({ name: 'my $(x)' }), openai)).rejects.toThrow(
    /update NAME --credential/,
  )
})
