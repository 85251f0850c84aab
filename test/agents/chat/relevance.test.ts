import { expect, test } from 'vitest'
import { relevantHits } from '../../../src/agents/chat/relevance.ts'

const hit = (score: number, chunkText: string, coverage?: number) => ({
  score,
  payload: { chunkText },
  ...(coverage !== undefined && { coverage }),
})

test('leaves out hits far below the best one, unless they contain half of the words of the query', () => {
  const hits = [
    hit(1, 'A refund of item 3 takes a day.', 0.9),
    hit(0.26, 'Item 1.', 0.2),
    hit(0.24, 'Item 2.', 0.2),
    hit(0.1, 'A refund of item 4 takes a day.', 0.2),
  ]
  expect(relevantHits(hits, 'how long does the refund of item 3 take')).toEqual(
    hits.filter((_, at) => at !== 2),
  )
})

test.each([
  ['What is the capital of France?', 'Insurance covers travel.', false],
  ['tell me a joke', 'Employees get vacation days.', false],
  ['Erstattungsfrist', 'Die Rückerstattung dauert 14 Tage.', true],
  ['Rückerstattungsfristen?', 'Die Erstattung dauert 14 Tage.', true],
  ['maksupalautuksen aika', 'Maksu palautetaan viikossa.', true],
  ['退款需要多长时间', '退款在14天内支付。', true],
  ['天气怎么样', '退款在14内支付。', false],
])('keeps a hit without a word of "%s" only if its words are related: %s', (query, text, isKept) => {
  expect(relevantHits([hit(0.2, text, 0)], query)).toHaveLength(isKept ? 1 : 0)
})

test('keeps a hit that was found by meaning, without a word of the query', () => {
  const hits = [hit(0.5, 'Get your money back.', 0), hit(0.21, 'Cash returns.', 0)]
  expect(relevantHits(hits, 'refund policy')).toEqual(hits)
})

test('uses only scores if there is no coverage', () => {
  const hits = [hit(0.1, 'a'), hit(0.05, 'b'), hit(0.02, 'c')]
  expect(relevantHits(hits, 'query')).toEqual(hits.slice(0, 2))
  expect(relevantHits([hit(-2, 'a'), hit(-3, 'b')], 'query')).toHaveLength(2)
})
