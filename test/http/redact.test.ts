import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createLog } from '../../src/base/log.ts'
import { messageCharsMax, presentableMessage, redact, redactLine } from '../../src/base/redact.ts'

const secrets = [
  ['a key of this runtime', 'refused wb_live_AbC123_secretsecret today', 'wb_live_AbC123_secretsecret'],
  ['a provider key', 'key sk-proj-AbCdEfGhIjKlMnOp was refused', 'AbCdEfGhIjKlMnOp'],
  ['a router key', 'sk-or-v1-0123456789abcdef', '0123456789abcdef'],
  ['a data API token', 'AstraCS:abcdef:0123456789', '0123456789'],
  ['a bearer token', 'Authorization: Bearer abc.def-123', 'abc.def-123'],
  ['a bearer token that begins with a word', 'Bearer token-abc.def', 'token-abc'],
  ['a JWT', 'got eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl', 'eyJzdWIiOiIx'],
  ['a query parameter', 'GET /x?token=hunter2&y=1', 'hunter2'],
  ['a key in a URL', 'GET https://x.example/mcp?page=1&key=hunter2&y=2 failed', 'hunter2'],
  ['a signature in a URL', 'https://x.example/mcp?X-Amz-Signature=hunter2', 'hunter2'],
  ['a parameter with an encoded name', 'https://x.example/mcp?api%5Fkey=hunter2', 'hunter2'],
  ['a prefixed parameter', 'access_token=hunter2', 'hunter2'],
  ['a password', 'password=hunter2 refused', 'hunter2'],
  ['a secret with a colon', 'secret: hunter2', 'hunter2'],
  ['an api_key pair', 'api_key="hunter2"', 'hunter2'],
  ['a JSON pair', '{"apiKey":"hunter2","n":1}', 'hunter2'],
  ['a JSON pair inside JSON', JSON.stringify({ body: '{"password":"hunter2"}' }), 'hunter2'],
  ['user information', 'postgres://wb:hunter2@db:5432/x', 'hunter2'],
] as const

test.each(secrets)('removes %s from a message', (_what, text, secret) => {
  expect(redact(text)).not.toContain(secret)
  expect(redact(text)).toContain('[redacted]')
})

test('keeps ordinary words', () => {
  const text = 'task-list sk-1 token bucket of 3, http://127.0.0.1:8787/docs?page=2&monkey=1#key'
  expect(redact(text)).toBe(text)
})

test.each([
  'credentials.token: must be a secret reference: env:NAME or file:/absolute/path',
  'credentials.token: Invalid input: expected string, received number',
  'password: is required',
  'OPENAI_API_KEY: Too big: expected string to have <=4096 characters',
  'authorization: has no value',
  'Send a bearer token, or basic authentication.',
  'this is no bearer token.',
])('keeps a message about a field with a secret name: %s', text => {
  expect(redact(text)).toBe(text)
})

test.each([
  ['a JWT', `eyJhbGciOiJI.eyJzdWIiOiIx${'A'.repeat(3_000)}.c2lnbmF0dXJl`, 'eyJzdWIiOiIx'],
  ['a long JWT', `eyJhbGciOiJI.eyJzdWIiOiIx${'A'.repeat(30_000)}.c2lnbmF0dXJl`, 'eyJzdWIiOiIx'],
  ['user information', 'postgres://wb:hunter2hunter2@db:5432/x', 'hunter'],
  ['a provider key', 'AIzaSyA0123456789-0123456789_0123456789', 'SyA0123'],
])('removes %s from a long text, at any truncation point', (_what, secret, shown) => {
  for (const limit of [500, 4_000, 16_000, 20_000])
    for (const before of [secret.length - 1, secret.length / 2, 30, 20, 15])
      for (const filler of ['word ', 'Bearer 0123456789abcdef ']) {
        const start = Math.max(0, Math.floor(limit - before))
        const text = `${filler.repeat(start / filler.length)} ${secret} ${'y'.repeat(30_000)}`
        expect(presentableMessage(text)).not.toContain(shown)
        expect(redactLine(JSON.stringify({ text }))).not.toContain(shown)
      }
})

test('truncates a message to 500 characters', () => {
  expect(presentableMessage('x'.repeat(messageCharsMax))).toHaveLength(500)
  expect(presentableMessage('x'.repeat(messageCharsMax))).not.toContain('…')
  expect(presentableMessage('x'.repeat(messageCharsMax + 1))).toHaveLength(500)
  expect(presentableMessage('x'.repeat(messageCharsMax + 1))).toMatch(/…$/)
})

test.each([
  ['words before a @', `${'a.'.repeat(2_000_000)}@`],
  ['text that starts like a JWT', 'eyJaaaaaaaa-'.repeat(300_000)],
  ['unterminated user information', `${'http://a'.repeat(500_000)}@`],
  ['endless parameters', '?key=&'.repeat(600_000)],
  ['a long parameter', `?${'a'.repeat(4_000_000)}key=1`],
  ['a name and white space', 'token '.repeat(600_000) + ' '.repeat(1_000_000)],
])('processes a message of several megabytes in bounded time: %s', (_what, text) => {
  // A quadratic search would exceed the timeout of this test.
  expect(presentableMessage(text).length).toBeLessThanOrEqual(messageCharsMax)
  const { written, stream } = lines()
  createLog({ level: 'info', stream }).info({ reason: text }, text)
  expect(written[0]!.length).toBeLessThan(20_000)
})

function lines() {
  const written: string[] = []
  return { written, stream: { write: (line: string) => written.push(line) } }
}

test('writes a log line as JSON, without secrets in its facts, message and error', () => {
  const { written, stream } = lines()
  const log = createLog({ level: 'info', stream })
  log.error({ password: 'hunter2', error: new Error('token=hunter2') }, 'failed with api_key=hunter2')
  log.debug({}, 'not at this level')
  expect(written).toHaveLength(1)
  expect(written[0]).not.toContain('hunter2')
  const line = JSON.parse(written[0]!)
  expect(line).toMatchObject({ level: 'error', msg: 'failed with api_key=[redacted]' })
  expect(line.error.stack).toContain('redact.test.ts')
})

test('writes any value as a line of JSON', () => {
  const { written, stream } = lines()
  const log = createLog({ level: 'info', stream })
  const words = fc.constantFrom(
    'token',
    '=',
    ':',
    '"',
    '\\',
    'secret',
    ' ',
    'Bearer',
    'abcd',
    '{',
    '}',
    'sk-',
    '9',
  )
  fc.assert(
    fc.property(fc.array(words, { maxLength: 12 }), fc.jsonValue(), (parts, fact) => {
      log.info({ fact, text: parts.join(''), [parts.join('')]: 1 }, parts.join(''))
      JSON.parse(written.pop()!)
    }),
  )
})
