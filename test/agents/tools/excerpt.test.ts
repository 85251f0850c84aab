import fc from 'fast-check'
import { expect, test } from 'vitest'
import { excerptOf } from '../../../src/agents/tools/excerpt.ts'

const filler = fc.stringMatching(/^[a-m]{1,9}$/)
const sentence = fc.array(filler, { minLength: 1, maxLength: 20 }).map(words => `X${words.join(' ')}.`)
const prose = fc.array(sentence, { maxLength: 60 }).map(sentences => sentences.join(' '))

/** A sentence that shares no word with `prose`. */
const answer = 'The quorum votes every Tuesday on tungsten.'
const query = 'when does the quorum vote on tungsten'

test('the window contains the whole matching sentence, wherever it is', () => {
  fc.assert(
    fc.property(prose, prose, fc.integer({ min: 60, max: 900 }), (before, after, charsMax) => {
      const text = `${before} ${answer} ${after}`
      const excerpt = excerptOf(text, query, charsMax)
      expect(excerpt.text).toContain(answer)
      expect(excerpt.text.length).toBeLessThanOrEqual(charsMax)
      expect(excerpt.isCut).toBe(text.length > charsMax)
      if (!excerpt.isCut) expect(excerpt.text).toBe(text)
    }),
  )
})

test('the window is part of the text, and splits no surrogate pair', () => {
  const unit = fc.oneof(
    fc.constantFrom(' ', '\n', '. ', '。', '𝄞', '👩‍👩‍👧', 'tungsten'),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 9 }),
  )
  const text = fc.array(unit, { minLength: 1, maxLength: 300 }).map(units => units.join(''))
  fc.assert(
    fc.property(text, fc.nat(400), (whole, charsMax) => {
      const excerpt = excerptOf(whole, query, charsMax)
      expect(excerpt.text.length).toBeLessThanOrEqual(charsMax)
      // A lone surrogate would not survive UTF-8.
      expect(Buffer.from(excerpt.text).toString()).toBe(excerpt.text)
      const inner = excerpt.isCut ? excerpt.text.replace(/^…|…$/g, '') : excerpt.text
      expect(whole).toContain(inner)
    }),
  )
})

test('splits no surrogate pair in a text without white space', () => {
  const pairs = '𝄞'.repeat(200)
  for (let charsMax = 100; charsMax < 110; charsMax++) {
    const { text } = excerptOf(`${pairs}tungsten${pairs}`, query, charsMax)
    expect(Buffer.from(text).toString()).toBe(text)
  }
})

test('the window is cut between words', () => {
  const words = Array.from({ length: 200 }, (_, at) => (at === 100 ? 'tungsten' : `word${at}`))
  const { text } = excerptOf(words.join(' '), query, 120)
  const inner = text.slice(1, -1).split(' ')
  expect(inner).toContain('tungsten')
  expect(words).toEqual(expect.arrayContaining(inner))
  expect(text.length).toBeGreaterThan(100)
})

test('the position with the most words of the query wins over an earlier one', () => {
  const noise = 'Nothing of it. '.repeat(40)
  const text = `A vote was held. ${noise}The quorum voted on tungsten. ${noise}`
  expect(excerptOf(text, query, 200).text).toContain('The quorum voted on tungsten.')
})

test('without a match, the window is the beginning', () => {
  const text = 'One sentence of many. '.repeat(50)
  expect(excerptOf(text, 'zinc', 100).text).toMatch(/^One sentence of many\. One .*\.…$/)
})

test('a match after the first 200,000 characters is not found, so a huge text is not read completely', () => {
  const noise = 'A word or two. '.repeat(13_000)
  expect(excerptOf(`${noise}Tungsten. ${noise}`, 'tungsten', 1_000).text).toContain('Tungsten')
  const { text } = excerptOf(`${noise}${noise}Tungsten.`, 'tungsten', 1_000)
  expect(text.length).toBeGreaterThan(900)
  expect(text).not.toContain('Tungsten')
})
