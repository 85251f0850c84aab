import { expect, test } from 'vitest'
import {
  errorIn,
  findKnownRefusal,
  hintForStatus,
  isFinalRefusal,
  statusOf,
} from '../../../src/models/provider/known-refusals.ts'
import { formatProviderReason, providerReasonIn } from '../../../src/models/provider/provider-failure.ts'

test.each([
  [
    'OpenAI',
    { error: { code: 'c', type: 't', param: 'p', message: 'm' } },
    { code: 'c', type: 't', param: 'p', message: 'm' },
  ],
  ['Gemini', [{ error: { code: 400, message: 'm' } }], { message: 'm' }],
  ['Ollama', { error: 'model not found' }, { message: 'model not found' }],
  ['vLLM', { code: 'c', message: 'm' }, { code: 'c', message: 'm' }],
  [
    'OpenRouter',
    { error: { message: 'outer', metadata: { raw: '{"error":{"message":"inner"}}' } } },
    { message: 'outer: inner' },
  ],
  [
    'FastAPI',
    { detail: [{ loc: ['body', 0, 'x'], msg: 'is missing' }, { message: 'and' }] },
    { message: 'body.0.x: is missing: and' },
  ],
  ['Mistral', { message: { detail: [{ loc: ['a'], msg: 'b' }] } }, { message: 'a: b' }],
  ['a repeated message', { message: 'm', detail: 'm' }, { message: 'm' }],
  ['a message that only looks like JSON', { message: '{no' }, { message: '{no' }],
  ['a blank message', { message: ' ' }, {}],
  ['null', null, {}],
  ['a number', 5, {}],
  ['an object as message', { message: { a: 1 } }, {}],
])('reads the error format of %s', (_name, body, reason) => {
  expect(providerReasonIn(body)).toEqual(reason)
})

test('reads at most three problems, and limits the length of each text', () => {
  const detail = [1, 2, 3, 4].map(number => ({ msg: `p${number}` }))
  expect(providerReasonIn({ detail }).message).toBe('p1: p2: p3')
  const long = 'x'.repeat(3_000)
  const { code, type, param, message } = providerReasonIn({
    code: long,
    type: long,
    param: long,
    message: long,
  })
  expect([code, type, param, message].map(text => text!.length)).toEqual([200, 200, 200, 2_000])
  expect(providerReasonIn({ error: long }).message).toHaveLength(2_000)
})

test.each([
  [{}, '', ''],
  [{ message: 'a\n\u200b b\x1b[2J' }, '', 'a b [2J'],
  [{ message: 'key 1234-secret is wrong' }, '1234-secret', 'key [redacted] is wrong'],
  [{ message: 'wrong: sk-proj-****abcd.' }, '', 'wrong: [redacted]'],
  [{ message: 'x'.repeat(300) }, '', 'x'.repeat(300)],
  [{ message: 'x'.repeat(301) }, '', `${'x'.repeat(299)}…`],
])('shows %j without secrets, in one line', (reason, credential, text) => {
  expect(formatProviderReason(reason, credential)).toBe(text)
})

test.each([
  [{ error: { code: 429 } }, { code: 429 }],
  [[{ error: 'x' }], 'x'],
  [
    { object: 'error', message: 'm' },
    { object: 'error', message: 'm' },
  ],
  [{ choices: [{ error: { code: 1 } }] }, { code: 1 }],
  [{ choices: [{ finish_reason: 'error' }] }, {}],
  [{ choices: [{ finish_reason: 'stop' }] }, undefined],
  [{ error: null, choices: [] }, undefined],
  ['text', undefined],
])('finds the error in %j', (body, error) => {
  expect(errorIn(body)).toEqual(error)
})

test.each([
  [{ code: 429 }, 429],
  [{ code: '503' }, 503],
  [{ code: 'x', status: 404 }, 404],
  [{ status_code: 400 }, 400],
  [{ code: 399 }, undefined],
  [{ code: 599 }, 599],
  [{ code: 600 }, undefined],
  [{ code: 400.5 }, undefined],
  [{ code: 'rate_limit_exceeded' }, 429],
  [{ type: 'insufficient_quota' }, 429],
  [{ type: 'overloaded_error' }, 529],
  [{ type: 'server_error' }, 503],
  [{ status: 'UNAVAILABLE' }, 503],
  [{ type: 'authentication_error' }, 401],
  [{ code: 'model_not_found' }, 404],
  [{ type: 'invalid_request_error' }, 400],
  [{ type: 'other' }, undefined],
  [null, undefined],
])('the status of %j is %s', (error, status) => {
  expect(statusOf(error)).toBe(status)
})

test.each([
  [400, { code: 'context_length_exceeded', message: 'maximum context length' }, 'context_overflow', true],
  [400, { message: 'flagged by moderation' }, 'content_policy', true],
  [429, { message: 'billing quota: try again in 5s' }, 'rate_limit', false],
  [402, {}, 'payment', true],
  [400, { code: 'insufficient_quota' }, 'payment', true],
  [413, {}, 'too_large', true],
  [400, { message: 'request entity too large' }, 'too_large', true],
  [401, {}, 'credential', false],
  [403, {}, 'credential', false],
  [429, {}, 'rate_limit', false],
  [400, { code: 'rate_limit_exceeded' }, 'rate_limit', false],
  [529, {}, 'overloaded', false],
  [400, { message: 'this model does not support image input' }, 'no_images', true],
  [400, { message: 'bad' }, undefined, false],
] as const)('a response %i with %j is %s', (status, reason, kind, isFinal) => {
  expect(findKnownRefusal(status, reason)?.kind).toBe(kind)
  expect(isFinalRefusal(status, reason)).toBe(isFinal)
})

test('suggests a check for each other status', () => {
  expect(hintForStatus(404)).toContain('Check modelName, endpointBaseUrl and endpointPath')
  expect(hintForStatus(500)).toContain('Retry in a moment')
  expect(hintForStatus(499)).toContain('embeddingDimension')
})
