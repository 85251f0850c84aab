import { expect, test } from 'vitest'
import { unsupportedList, unsupportedSentences } from '../../src/cli/chat/unsupported.ts'

const content = 'It is true [1]. It\x07 is\ninvented [2].'

test('returns the marked sentences without control characters', () => {
  const unsupported = JSON.stringify([{ start: 16, end: content.length }])
  const sentences = unsupportedSentences({ content, metadata: { unsupported } })
  expect(sentences).toEqual(['It is\ninvented [2].'])
  expect(unsupportedList(sentences)).toEqual({
    heading: '1 sentence is not supported by the sources:',
    items: ['It is invented.'],
  })
})

test.each([
  undefined,
  '{',
  'null',
  '[null, 1, {}]',
  '[{"start": -9, "end": 4}, {"start": 1}, {"start": 900, "end": 901}]',
])('ignores the invalid marks %j', unsupported => {
  const metadata: Record<string, string> = unsupported === undefined ? {} : { unsupported }
  expect(unsupportedSentences({ content, metadata })).toEqual([])
})
