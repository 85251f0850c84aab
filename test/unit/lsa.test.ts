import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { randomNumbers } from '../../src/base/random-numbers.ts'
import { terms } from '../../src/base/words.ts'
import {
  type EmbeddedPassage,
  fitLsaModel as fitModel,
  LsaModel,
  lsaDimension,
  Sample,
} from '../../src/models/lsa.ts'
import { placeholderEmbed } from '../../src/models/placeholder-embedder.ts'

const passagesOf = (...texts: string[]): EmbeddedPassage[] => texts.map(text => ({ title: null, text }))
const cosine = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, at) => sum + value * b[at]!, 0)
const lengthOf = (vector: Float32Array) => Math.sqrt(cosine(vector, vector))

function expectUnitOrZero(vector: Float32Array) {
  expect(vector).toHaveLength(lsaDimension)
  expect(vector.every(Number.isFinite)).toBe(true)
  expect(lengthOf(vector) === 0 || Math.abs(lengthOf(vector) - 1) < 1e-5).toBe(true)
}

const word = fc.constantFrom(
  ...'wing flow shock heat plate shell beam drag lift mach the of and'.split(' '),
  'é',
  '',
)
const text = fc.array(word, { maxLength: 12 }).map(list => list.join(' '))
const passage = fc.record({ title: fc.option(text), text })
const corpus = fc.array(passage, { maxLength: 20 })

/** Passages of six words each, taken from the twenty words of one topic; topics have no words in common. */
function topicCorpus(topics: number, passagesPerTopic: number): EmbeddedPassage[] {
  const next = randomNumbers(7)
  const pick = () => Math.floor(next() * 20)
  return Array.from({ length: topics * passagesPerTopic }, (_, n) => ({
    title: null,
    text: Array.from({ length: 6 }, () => `topic${n % topics}word${pick()}`).join(' '),
  }))
}

describe('fit', () => {
  test.each([
    ['no passages', []],
    ['one passage', passagesOf('the wing of a slipstream')],
    ['three passages', passagesOf('wing flow', 'flow of heat', 'heat in a plate')],
    ['empty passages', passagesOf('', '', '')],
    ['an empty passage among others', passagesOf('wing flow', '', 'the of and')],
    ['identical passages', passagesOf(...Array.from({ length: 300 }, () => 'wing flow heat'))],
    ['one term', passagesOf('wing', 'wing wing', '')],
    ['no two passages alike', passagesOf(...Array.from({ length: 300 }, (_, n) => `word${n}`))],
    ['more passages than terms', topicCorpus(3, 200)],
  ])('of %s returns finite vectors of length 1 or 0', (_, passages) => {
    const model = fitModel(passages)
    for (const one of [...passages, 'wing flow', 'unheard', '']) expectUnitOrZero(model.embed(one))
  })

  test('of any small corpus returns a nonzero vector exactly for passages with terms', () => {
    fc.assert(
      fc.property(corpus, passages => {
        const model = fitModel(passages)
        const vectors = passages.map(one => model.embed(one))
        for (const [at, vector] of vectors.entries()) {
          expectUnitOrZero(vector)
          const known = terms(`${passages[at]!.title ?? ''} ${passages[at]!.text}`).length > 0
          expect(lengthOf(vector) > 0).toBe(known)
        }
      }),
      { numRuns: 50 },
    )
  })

  test('preserves cosines of weighted terms if the corpus has fewer than 128 dimensions', () => {
    const passages = passagesOf('wing wing flow', 'flow heat', 'heat plate shell', 'shell wing', 'beam')
    const model = fitModel(passages)
    const spread = new Map<string, number>()
    for (const { text } of passages)
      for (const term of new Set(terms(text))) spread.set(term, (spread.get(term) ?? 0) + 1)
    const names = [...spread.keys()]
    const weighed = passages.map(({ text }) => {
      const found = terms(text)
      const row = names.map(
        name =>
          Math.log(1 + found.filter(term => term === name).length) * Math.log(6 / (spread.get(name)! + 1)),
      )
      return Float32Array.from(row, value => value / Math.hypot(...row))
    })
    for (const [a, one] of passages.entries())
      for (const [b, other] of passages.entries())
        expect(
          Math.abs(cosine(model.embed(one), model.embed(other)) - cosine(weighed[a]!, weighed[b]!)),
        ).toBeLessThan(0.02)
  })

  test('finds passages of a topic by a word that they do not contain', () => {
    const passages = topicCorpus(12, 30)
    const model = fitModel(passages, { dimension: 16 })
    let best = 0
    for (let topic = 0; topic < 12; topic++) {
      const query = model.embed(`topic${topic}word1`)
      const others = passages
        .filter(({ text }) => !text.split(' ').includes(`topic${topic}word1`))
        .map(one => ({ one, score: cosine(query, model.embed(one)) }))
        .sort((a, b) => b.score - a.score)
      best += others.slice(0, 10).filter(({ one }) => one.text.startsWith(`topic${topic}word`)).length
    }
    expect(best).toBe(120)
  })

  test('brings words with common contexts closer than others', () => {
    const model = fitModel(
      passagesOf(
        'the car needs petrol and a driver',
        'an automobile needs petrol and a driver',
        'the driver of the car stopped',
        'the driver of the automobile stopped',
        'bread wants flour and an oven',
        'a loaf wants flour and an oven',
        'the baker left the loaf in the oven',
        'the baker left the bread in the oven',
      ),
      { dimension: 2 },
    )
    const near = cosine(model.embed('car'), model.embed('automobile'))
    expect(near).toBeGreaterThan(0.9)
    expect(cosine(model.embed('car'), model.embed('bread'))).toBeLessThan(0.3)
  })

  test('is not dominated by many copies of a passage', () => {
    const rare = Array.from({ length: 20 }, (_, n) => `rare${n} seldom${n} scarce${n}`)
    const passages = passagesOf(
      ...Array.from({ length: 3000 }, () => 'wing flow heat plate'),
      ...rare,
      ...rare,
    )
    const model = fitModel(passages)
    for (const [at, one] of rare.entries()) {
      expect(cosine(model.embed(one), model.embed(`scarce${at}`))).toBeGreaterThan(0.99)
      expect(Math.abs(cosine(model.embed(one), model.embed('wing')))).toBeLessThan(0.05)
    }
  })

  test('uses the title of a passage', () => {
    const passages = [...topicCorpus(4, 10), { title: 'slipstream', text: 'topic1word1' }]
    const model = fitModel(passages)
    expect(cosine(model.embed('slipstream'), model.embed(passages.at(-1)!))).toBeGreaterThan(0.8)
  })

  test('is deterministic for a seed, and similar for another seed', () => {
    const passages = topicCorpus(12, 30)
    const [one, same, other] = [fitModel(passages), fitModel(passages), fitModel(passages, { seed: 2 })]
    expect(same.encode()).toEqual(one.encode())
    expect(other.encode().weights).not.toEqual(one.encode().weights)
    const [a, b] = [passages[0]!, passages[12]!]
    expect(cosine(other.embed(a), other.embed(b))).toBeCloseTo(cosine(one.embed(a), one.embed(b)), 1)
  })

  test.each([
    [3, 10],
    [50, 10],
    [10, 10],
  ])('a sample of %i items has at most %i, all different', (total, size) => {
    const sample = new Sample<number>(size)
    for (let item = 0; item < total; item++) sample.add(item)
    expect(new Set(sample.items).size).toBe(Math.min(total, size))
  })

  test('samples a large number of passages', () => {
    const passages = Array.from({ length: 500 }, (_, n) => ({ title: null, text: `word${n}` }))
    expect(fitModel(passages, { sampleMax: 100 }).terms).toHaveLength(100)
    expect(fitModel(passages, { sampleMax: 100 }).terms).toEqual(fitModel(passages, { sampleMax: 100 }).terms)
  })

  test('reports its progress', () => {
    const told: number[] = []
    fitModel(topicCorpus(3, 10), { onProgress: fraction => told.push(fraction) })
    expect(told.at(-1)).toBe(1)
    expect(told).toEqual(told.toSorted((a, b) => a - b))
  })
})

describe('LsaModel', () => {
  test('embeds a query like a passage without a title', () => {
    const model = fitModel(topicCorpus(3, 10))
    expect(model.embed('topic1word1')).toEqual(model.embed({ title: null, text: 'topic1word1' }))
  })

  test('has bit-identical results after encode and decode, at any byte offset', () => {
    fc.assert(
      fc.property(corpus, fc.integer({ min: 0, max: 3 }), (passages, shift) => {
        const model = fitModel(passages)
        const { weights, ...rest } = model.encode()
        const stored = new Uint8Array(weights.length + shift)
        stored.set(weights, shift)
        const decoded = LsaModel.decode({ ...rest, weights: stored.subarray(shift) })
        expect(decoded.terms).toEqual(model.terms)
        for (const one of passages) expect(decoded.embed(one)).toEqual(model.embed(one))
        expect(decoded.encode()).toEqual(model.encode())
      }),
      { numRuns: 50 },
    )
  })

  test('rejects inconsistent parts', () => {
    const encoded = fitModel(topicCorpus(3, 10)).encode()
    expect(() => LsaModel.decode({ ...encoded, weights: encoded.weights.subarray(1) })).toThrow(
      'bytes of weights',
    )
    expect(() => LsaModel.decode({ ...encoded, terms: `${encoded.terms}\nmore` })).toThrow('bytes of weights')
    expect(() => LsaModel.decode({ ...encoded, terms: '' })).toThrow('bytes of weights')
    const broken = encoded.weights.slice()
    broken.fill(255, 0, 4)
    expect(() => LsaModel.decode({ ...encoded, weights: broken })).toThrow()
  })
})

describe('placeholderEmbed', () => {
  test('returns finite vectors of length 1, or 0 for a text without terms', () => {
    fc.assert(
      fc.property(fc.oneof(passage, fc.string({ unit: 'binary' })), one => {
        const vector = placeholderEmbed(one)
        expectUnitOrZero(vector)
        expect(placeholderEmbed(one)).toEqual(vector)
      }),
    )
    expect(lengthOf(placeholderEmbed('the of and'))).toBe(0)
  })

  test('is deterministic across processes', () => {
    const vector = placeholderEmbed({ title: 'slipstream', text: 'the lift of a wing' })
    expect(Array.from(vector.subarray(0, 8), value => Number(value.toFixed(4)))).toMatchInlineSnapshot(`
      [
        0.0371,
        0,
        0.0371,
        0,
        0.2692,
        -0.0371,
        0,
        0,
      ]
    `)
  })

  test('brings common words and similar spellings closer', () => {
    const query = placeholderEmbed('aeroelastic model')
    const shared = cosine(query, placeholderEmbed('models of aeroelastic wings'))
    const spelt = cosine(query, placeholderEmbed('aeroelasticity'))
    const foreign = cosine(query, placeholderEmbed('bread flour oven'))
    expect(shared).toBeGreaterThan(spelt)
    expect(spelt).toBeGreaterThan(foreign + 0.05)
  })

  test('uses all 128 dimensions', () => {
    const vector = placeholderEmbed(Array.from({ length: 400 }, (_, n) => `word${n}`).join(' '))
    expect(vector.every(value => value !== 0)).toBe(true)
  })
})
