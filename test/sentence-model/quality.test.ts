import { expect, test } from 'vitest'
import { SentenceEncoder } from '../../src/sentence-model/sentence-encoder.ts'
import { cranfield, qualityAt10, readEntries, readGrades } from '../harness/beir.ts'
import { cosine, ReferenceEncoder } from './reference-encoder.ts'

const encoder = new SentenceEncoder()
const queries = readEntries(cranfield, 'queries.jsonl')
const documents = readEntries(cranfield, 'corpus.jsonl').filter(({ text }) => text)

test('vectors of 20 questions and abstracts are close to those of the original in f32', () => {
  const reference = new ReferenceEncoder()
  const texts = [...queries.slice(0, 18), ...documents.slice(0, 2)].map(({ text }) => text)
  const cosines = encoder.encode(texts).map(({ vector, tokens }) => cosine(vector, reference.embed(tokens)))
  expect(Math.min(...cosines)).toBeGreaterThan(0.998)
}, 300_000)

test('on Cranfield, the ranking is as good as that of the original in f32', () => {
  const grades = readGrades(cranfield)
  const vectors = documents.map(({ _id, title, text }) => ({
    id: _id,
    vector: encoder.embed([`${title} ${text}`])[0]!,
  }))
  const measured = queries.flatMap(({ _id, text }) => {
    const judged = grades.get(_id)
    if (!judged) return []
    const query = encoder.embed([text])[0]!
    const ranking = vectors
      .map(({ id, vector }) => ({ id, score: cosine(query, vector) }))
      .sort((a, b) => b.score - a.score)
    return [
      qualityAt10(
        ranking.map(({ id }) => id),
        judged,
      ).ndcg,
    ]
  })
  expect(measured.reduce((sum, ndcg) => sum + ndcg, 0) / measured.length).toBeGreaterThan(0.37)
}, 600_000)
