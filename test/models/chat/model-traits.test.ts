import { expect, test } from 'vitest'
import { initialTraits, refusedSetting, traitsAfterRefusal } from '../../../src/models/chat/model-traits.ts'

const traits = initialTraits('example.com')

test('the name of the token limit depends on the host', () => {
  expect(traits.tokenLimit).toBe('max_tokens')
  expect(initialTraits('api.openai.com').tokenLimit).toBe('max_completion_tokens')
})

test.each([
  ['Use max_completion_tokens instead', { max_tokens: 1 }, { tokenLimit: 'max_completion_tokens' }],
  ['max_completion_tokens is not supported', { max_completion_tokens: 1 }, { tokenLimit: 'max_tokens' }],
  ['stream_options: unknown field', { stream_options: {} }, { omitsStreamOptions: true }],
  ['reasoning_content must be passed back', {}, { wantsReasoning: true }],
  ['must define `tools`', {}, { definesTools: true }],
  ['Tool call id must have a length of 9', {}, { wantsShortIds: true }],
  ['System role not supported', {}, { lacksSystemRole: true }],
])('learns from the message: %s', (message, body, change) => {
  expect(traitsAfterRefusal({ message }, body, traits)).toEqual({ ...traits, ...change })
  const changed = { ...traits, ...change } as typeof traits
  // A trait that is already known is no reason to repeat the request, unless the request still has the parameter.
  if (Object.keys(body).length === 0) expect(traitsAfterRefusal({ message }, body, changed)).toBeUndefined()
})

test.each([
  ['the parameter that was rejected was not sent', 'stream_options: unknown field', {}],
  ['max_tokens was not sent', 'use max_completion_tokens', {}],
  ['the message names another parameter', 'seed is not supported', { stream_options: {} }],
  ['the parameter is supported', 'stream_options was read', { stream_options: {} }],
  ['reasoning is mentioned only', 'reasoning_content', {}],
  ['the request has tools', 'must define `tools`', { tools: [] }],
])('learns nothing if %s', (_reason, message, body) => {
  expect(traitsAfterRefusal({ message }, body, traits)).toBeUndefined()
})

test.each([
  [{ param: 'temperature' }, { temperature: 1 }, 'temperature'],
  [{ param: 'temperature' }, {}, undefined],
  [{ message: 'top_p is not supported' }, { temperature: 1, top_p: 1 }, 'topP'],
  [{ message: 'top_p is fine' }, { top_p: 1 }, undefined],
  [{ message: 'stopwords are not supported' }, { stop: [] }, undefined],
  [{ message: 'unknown: reasoning_effort' }, { reasoning_effort: 'low' }, 'reasoningEffort'],
  [{ message: 'unsupported' }, { stop: [] }, undefined],
])('finds the rejected setting in %j for %j', (reason, body, setting) => {
  expect(refusedSetting(reason, body)).toBe(setting)
})
