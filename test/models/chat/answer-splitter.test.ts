import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AnswerSplitter } from '../../../src/models/chat/answer-splitter.ts'

/** Returns the text, reasoning and calls of an answer that is read in pieces. */
function split(pieces: readonly string[], isCall: (block: string) => boolean = () => false) {
  const calls: string[] = []
  const splitter = new AnswerSplitter(block => {
    if (isCall(block)) calls.push(block)
    return isCall(block)
  })
  let [text, reasoning] = ['', '']
  for (const part of [...pieces.flatMap(piece => splitter.read(piece)), ...splitter.end()])
    if (part.kind === 'text') text += part.delta
    else if (part.kind === 'reasoning') reasoning += part.delta
    else [text, reasoning] = ['', reasoning + text]
  return { text, reasoning, calls }
}

describe('reasoning in tags', () => {
  test.each([
    ['at the beginning', '<think>a</think>b', 'b', 'a'],
    ['behind white space', '\n <think>a</think>\n\nb', 'b', 'a'],
    ['with another name', '<thought>a</thought>b', 'b', 'a'],
    ['twice', '<think>a</think>\n<think>b</think>\nc', 'c', 'ab'],
    ['without an end', '<think>a', '', 'a'],
    ['opened by the template', 'a\n</think>\n\nb', 'b', 'a\n'],
    ['opened by the template, and empty', '</think>\n\nb', 'b', ''],
    ['opened by the template, without a line of its own before', 'a</think>\nb', 'b', 'a'],
  ])('is separated from the text %s', (_where, answer, text, reasoning) => {
    expect(split([answer])).toMatchObject({ text, reasoning })
  })

  test.each([
    ['after the answer began', 'a <think>b</think>\nc'],
    ['in a code span', 'The tag `</think>`\nends it.'],
    ['in a fence', '```\n</think>\n```\n'],
    ['in a fence of tildes', '~~~xml\n</think>\n~~~\n'],
    ['in the middle of a sentence', 'the </think> tag'],
    ['of another name', '<thinker>a</thinker>'],
  ])('%s remains text', (_where, answer) => {
    expect(split([answer])).toMatchObject({ text: answer, reasoning: '' })
  })

  test('remains text in an answer whose reasoning has its own field', () => {
    const splitter = new AnswerSplitter(undefined)
    splitter.treatAllAsAnswer()
    expect(splitter.read('a\n</think>\nb')).toEqual([{ kind: 'text', delta: 'a\n</think>\nb' }])
  })
})

describe('tool calls in tags', () => {
  const isCall = (block: string) => block.includes('yes')

  test('are removed, including the white space after them', () => {
    const answer = 'Look:\n<tool_call>yes</tool_call>\n\n<tool_call>yes too</tool_call>\nDone.'
    expect(split([answer], isCall)).toEqual({
      text: 'Look:\nDone.',
      reasoning: '',
      calls: ['<tool_call>yes</tool_call>', '<tool_call>yes too</tool_call>'],
    })
  })

  test.each(['<tool_call>no</tool_call> x', '`<tool_call>yes</tool_call>`', '[TOOL_CALLS] no'])(
    'remain text if they are not calls: %s',
    answer => expect(split([answer], isCall)).toMatchObject({ text: answer, calls: [] }),
  )
})

const words = fc.constantFrom(
  ...['<think>', '</think>', '<tool_call>', '</tool_call>', '[TOOL_CALLS]', '```', '`', '\n', ' ', '<', 'a'],
)
const answers = fc.array(words, { maxLength: 24 }).map(parts => parts.join(''))

test('the result does not depend on the division of an answer into chunks', () => {
  const cuts = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 20 })
  const isCall = (block: string) => block.includes('a')
  fc.assert(
    fc.property(answers, cuts, (answer, sizes) => {
      const pieces: string[] = []
      for (let at = 0, turn = 0; at < answer.length; turn++) {
        const size = sizes[turn % sizes.length]!
        pieces.push(answer.slice(at, at + size))
        at += size
      }
      expect(split(pieces, isCall)).toEqual(split([answer], isCall))
    }),
    { numRuns: 500 },
  )
})

test('an answer without a tag on its own line is returned unchanged', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), answers, (start, rest) => {
      const answer = `x${start}${rest.replaceAll('</think>', '')}`
      expect(split([answer])).toMatchObject({ text: answer, reasoning: '' })
    }),
    { numRuns: 500 },
  )
})

test('many tags in code are read in linear time', () => {
  const startedAt = performance.now()
  expect(split([`~~~\n${'<tool_call>'.repeat(90_000)}\n~~~\n`]).calls).toEqual([])
  expect(performance.now() - startedAt).toBeLessThan(5_000)
})

test('a call that does not end is read in linear time', () => {
  const splitter = new AnswerSplitter(() => false)
  const startedAt = performance.now()
  splitter.read('<tool_call>')
  for (let at = 0; at < 300_000; at++) splitter.read('abc')
  expect(splitter.end()[0]).toMatchObject({ kind: 'text' })
  expect(performance.now() - startedAt).toBeLessThan(5_000)
})
