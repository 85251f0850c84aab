import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { searchQuery } from '../../../src/agents/chat/search-query.ts'
import { isAffirmation, isSmallTalk } from '../../../src/agents/chat/small-talk.ts'

const earlier = 'How long is the refund window for customers in Germany?'
const added = 'long refund window customers germany'

describe('a follow-up question includes the words of the last query', () => {
  test.each([
    ['and abroad?', `and abroad? ${added}`],
    ['And for damaged goods?', `And for damaged goods? ${added}`],
    ['what about the second one?', `what about the second one? ${added}`],
    ['What about Austria?', `What about Austria? ${added}`],
    ['how about customers in Austria', 'how about customers in Austria long refund window germany'],
    ['How long is it valid?', 'How long is it valid? refund window customers germany'],
    ['Who approves it?', `Who approves it? ${added}`],
    ['Why?', `Why? ${added}`],
    ['where?', `where? ${added}`],
    ['In which year?', `In which year? ${added}`],
    ['Is there another one?', `Is there another one? ${added}`],
    ['Compare the two.', `Compare the two. ${added}`],
    ['why is that?', `why is that? ${added}`],
    ['Can they extend it?', `Can they extend it? ${added}`],
    ['Does this apply to contractors who work part-time?', expect.stringContaining('refund window')],
    ['Tell me more about the latter', `Tell me more about the latter ${added}`],
    ['And the others?', `And the others? ${added}`],
    ['same for Switzerland', `same for Switzerland ${added}`],
    ['or by mail?', `or by mail? ${added}`],
    ['So how long?', 'So how long? refund window customers germany'],
    ['also for contractors?', `also for contractors? ${added}`],
    ['What else?', `What else? ${added}`],
  ])('%s', (question, query) => {
    expect(searchQuery(question, earlier)).toEqual(query)
  })
})

describe('a self-contained question is unchanged', () => {
  test.each([
    'When does the desk open?',
    'refund window',
    'What is the refund window and how is it computed for customers?',
    'What does IT do about lost passwords?',
    'Show me the documents of the last quarter',
    'Is there a limit on uploads?',
    'In which country are both offices?',
    'What is RAG?',
    'And the second thing I would like to know is how invoices are sent to partners',
    'und im Ausland?',
    'So lange dauert es?',
    'Also wie lange?',
    'plus de détails ?',
    'Hvad koster det her i butikken?',
    'et à l’étranger ?',
    '¿y en el extranjero?',
    '海外はどうですか',
    'What is the first law of thermodynamics?',
  ])('%s', question => {
    expect(searchQuery(question, earlier)).toBe(question)
  })
})

describe('small talk is not searched for', () => {
  test.each([
    'hi',
    'Hello!',
    'Hey there 👋',
    'thanks',
    'Thank you so much!!',
    'ok great',
    'Thank you very much for your help',
    'Great, that works! Thanks for explaining.',
    'Sounds good',
    "That's perfect, good to know",
    'Hello everyone! Who are you?',
    'OK, got it. Thanks again!',
    'Great, that makes sense, thank you for your help.',
    'good morning',
    'bye',
    'haha',
    '👍',
    '...',
    'Danke schön!',
    'Vielen Dank, alles klar',
    'Merci beaucoup',
    '¡Muchas gracias!',
    'Obrigada',
    'Grazie mille',
    'Dank je wel',
    'Tack så mycket',
    'dziękuję',
    'Teşekkür ederim',
    'Спасибо',
    'Добрый день',
    'ευχαριστώ',
    'תודה',
    'شكرا',
    '谢谢',
    'ありがとうございます',
    '감사합니다',
  ])('%s', message => {
    expect(searchQuery(message, earlier)).toBeUndefined()
  })
})

test.each([
  'hi, how long is the refund window?',
  'ok and what about Austria?',
  'thanks to whom was it built?',
  'good refund',
  'Test of the wing',
  'hello world program',
  'no refund',
])('a message that also asks something is searched: %s', message => {
  expect(isSmallTalk(message)).toBe(false)
  expect(searchQuery(message, undefined)).toBe(message)
})

test('agreement repeats the last search if there was one', () => {
  expect(searchQuery('yes please', earlier)).toBe(earlier)
  expect(searchQuery('Go ahead', earlier)).toBe(earlier)
  expect(searchQuery('Please elaborate.', earlier)).toBe(earlier)
  expect(searchQuery('More details, please', earlier)).toBe(earlier)
  expect(searchQuery('yes', undefined)).toBeUndefined()
})

test('without an earlier query, a question is unchanged', () => {
  expect(searchQuery('and abroad?', undefined)).toBe('and abroad?')
})

test('a query always begins with the question, and has a maximum length', () => {
  const text = fc.oneof(fc.string({ unit: 'grapheme' }), fc.lorem())
  fc.assert(
    fc.property(text, text, (question, last) => {
      const query = searchQuery(question, last)
      if (query === undefined || isAffirmation(question)) return
      expect(query.startsWith(question)).toBe(true)
      expect(query.length).toBeLessThanOrEqual(8_192)
    }),
  )
})
