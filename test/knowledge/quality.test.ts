import { expect, test } from 'vitest'
import { records } from '../../src/contract/records.ts'
import { cranfield, qualityAt10, readEntries, readGrades } from '../harness/beir.ts'
import { type Base, makeBase } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'

const recordsPerUpsert = 500
const grades = readGrades(cranfield)

/** Means of nDCG@10 and recall@10 over all judged questions. */
async function qualityOf(base: Base, fields: object) {
  let [ndcg, recall, asked] = [0, 0, 0]
  for (const { _id, text } of readEntries(cranfield, 'queries.jsonl')) {
    const judged = grades.get(_id)
    if (!judged) continue
    const hits = await base.search(text, { topK: 100, ...fields })
    const quality = qualityAt10(
      hits.map(({ id }) => id),
      judged,
    )
    ndcg += quality.ndcg
    recall += quality.recall
    asked++
  }
  return { ndcg: ndcg / asked, recall: recall / asked }
}

test('on Cranfield, hybrid search is better than lexical search, and reranking does not make it worse', async () => {
  const wb = await open()
  const base = await makeBase(wb)
  const all = readEntries(cranfield, 'corpus.jsonl').flatMap(({ _id, title, text }) =>
    text ? [{ id: _id, text, payload: { title } }] : [],
  )
  for (let from = 0; from < all.length; from += recordsPerUpsert) {
    const body = { records: all.slice(from, from + recordsPerUpsert) }
    await wb.call(records.upsert, { params: base.params, body })
  }
  await wb.settle()
  const lexical = await qualityOf(base, { lexicalWeight: 1 })
  const hybrid = await qualityOf(base, {})
  const reranked = await qualityOf(base, { rerank: true })
  expect(lexical.ndcg).toBeGreaterThan(0.37)
  expect(hybrid.ndcg).toBeGreaterThan(0.415)
  expect(hybrid.recall).toBeGreaterThan(0.46)
  expect(reranked.ndcg).toBeGreaterThanOrEqual(hybrid.ndcg)
})
