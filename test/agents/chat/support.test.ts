import { readFileSync } from 'node:fs'
import { expect, onTestFinished, test, vi } from 'vitest'
import { claimsIn } from '../../../src/agents/chat/claims.ts'
import { isEnglish, SUPPORT_MIN, supportOf } from '../../../src/agents/chat/support.ts'
import { SentenceEncoder } from '../../../src/sentence-model/sentence-encoder.ts'

const passages = [
  'The parcel weighs 1,500 g and costs 9.50 euros. It arrives within 14 days of the order in Scotland.\n\n| plan | seats |\n| --- | --- |\n| team | 40 |',
  'Opened software cannot be returned to the shop.',
]

/** Returns the support of a sentence if only words decide. */
async function supportByWords(sentence: string): Promise<number> {
  const embed = async (texts: readonly string[]) => texts.map(() => new Float32Array(384))
  const supports = await supportOf([sentence], { passages, context: 'Anna asks: is 99 too much?' }, embed)
  return supports![0]!
}

test.each([
  'The parcel weighs 1500 g.',
  'It costs 9.5 euros.',
  'The parcel arrives within fourteen days of the order.',
  'The Scottish parcel arrives within 14 days.',
  'The plan "team" has 40 seats.',
  'The parcel costs 9.50 euros, so 99 is too much, Anna.',
  'In the EU, the parcel arrives within 14 days.',
  'It takes two weeks until the order arrives there.',
  'Six hundred people have ordered the parcel before.',
])('accepts the facts of %j', async sentence => {
  expect(await supportByWords(sentence)).toBeGreaterThanOrEqual(0)
})

test.each([
  'The parcel weighs 1700 g.',
  'The parcel costs 12 euros.',
  'The parcel arrives within thirty days of the order.',
  'The parcel arrives within nine days of the order.',
  'The parcel arrives in Norway within 14 days.',
  'The software can be returned to form_7.pdf.',
  'The software can be returned with the form HR-27.',
  'The shop gives the parcel to the "Post of Norway".',
  'Opened software can be returned to the shop.',
])('rejects the facts of %j', async sentence => {
  expect(await supportByWords(sentence)).toBe(-1)
})

test('reads long words and runs of marks in linear time', async () => {
  const started = performance.now()
  for (const piece of ['a', '_', '[', 'a-']) {
    const text = `The parcel is ${piece.repeat(100_000)} thousand`
    expect(claimsIn(text).length).toBeLessThanOrEqual(1)
    await supportByWords(text)
  }
  expect(performance.now() - started).toBeLessThan(5_000)
})

/** Counts the look-ups in sets until the end of the test. */
function countLookups(): () => number {
  let count = 0
  class CountingSet<T> extends Set<T> {
    override has(value: T): boolean {
      count++
      return super.has(value)
    }
  }
  vi.stubGlobal('Set', CountingSet)
  onTestFinished(() => {
    vi.unstubAllGlobals()
  })
  return () => count
}

const shortLines = (count: number) => `\`\`\`\n${'z\n'.repeat(count)}`
const longSentence = (terms: number) => Array.from({ length: terms }, (_, at) => `q${at}`).join(' ')

test.each([
  ['many sentences and many short lines', Array<string>(2_000).fill('q w x the'), shortLines(10_000)],
  ['many short lines', ['q w x the'], shortLines(10_000)],
  ['many sentences', Array<string>(2_000).fill('q w x the'), 'The parcel arrives.'],
  ['the product of both', Array<string>(100).fill('q w x the'), shortLines(1_900)],
  ['a long sentence', [longSentence(4_000)], shortLines(1_900)],
])('does not compare %s', async (_, sentences, passage) => {
  const embed = vi.fn()
  const count = countLookups()
  expect(await supportOf(sentences, { passages: [passage], context: '' }, embed)).toBeUndefined()
  expect(embed).not.toHaveBeenCalled()
  expect(count()).toBeLessThan(30_000)
})

test('compares a long answer with many passages', async () => {
  const embed = vi.fn(async (texts: readonly string[]) => texts.map(() => new Float32Array(384)))
  const count = countLookups()
  const sentences = Array<string>(80).fill(longSentence(10))
  const supports = await supportOf(sentences, { passages: [shortLines(600)], context: '' }, embed)
  expect(supports).toHaveLength(80)
  expect(count()).toBeLessThan(1_000_000)
})

test.each([
  ['You can return the item within 30 days of the delivery.', true],
  ['Sie können den Artikel innerhalb von 30 Tagen nach der Lieferung zurückgeben.', false],
  ['Vous pouvez retourner les articles dans les 30 jours suivant la livraison.', false],
  ['Puede devolver los artículos en un plazo de 30 días a partir de la entrega.', false],
  ['返品は30日以内に可能です。', false],
])('recognizes the language of %j', (text, expected) => {
  expect(isEnglish(text)).toBe(expected)
})

test('marks half of the unsupported labeled sentences, and few of the others', async () => {
  const encoder = new SentenceEncoder()
  const path = 'test/fixtures/faithfulness/topics.json'
  const topics = JSON.parse(readFileSync(path, 'utf8')) as {
    half: string
    passages: string[]
    sentences: [kind: string, text: string][]
  }[]
  const counts = { supported: [0, 0], unsupported: [0, 0] }
  for (const topic of topics.filter(({ half }) => half === 'held-out')) {
    const texts = topic.sentences.map(([, text]) => claimsIn(text)[0]?.text ?? '')
    const evidence = { passages: topic.passages, context: '' }
    const supports = await supportOf(texts, evidence, async all => all.map(text => encoder.embed([text])[0]!))
    for (const [at, [kind]] of topic.sentences.entries()) {
      const isSupported = ['verbatim', 'paraphrase', 'merged'].includes(kind)
      const count = counts[isSupported ? 'supported' : 'unsupported']
      if (texts[at] !== '' && supports![at]! < SUPPORT_MIN) count[0]!++
      count[1]!++
    }
  }
  expect(counts).toEqual({ supported: [expect.any(Number), 60], unsupported: [expect.any(Number), 56] })
  expect(counts.supported[0]).toBeLessThanOrEqual(2)
  expect(counts.unsupported[0]).toBeGreaterThanOrEqual(28)
})
