import { expect, test } from 'vitest'
import { limits } from '../../src/contract/limits.ts'
import { SearchTimes } from '../../src/knowledge/search/search-times.ts'

const k = { workspaceId: 'w', knowledgeBaseId: 'k' }

test('summarizes the times of each mode by nearest rank', () => {
  const times = new SearchTimes()
  for (let ms = 100; ms >= 1; ms--) times.add(k, 'hybrid', ms)
  times.add(k, 'vector', 7)
  times.add({ ...k, workspaceId: 'other' }, 'lexical', 9)
  expect(times.summarize(k)).toEqual([
    { mode: 'hybrid', count: 100, p50Ms: 50, p95Ms: 95 },
    { mode: 'vector', count: 1, p50Ms: 7, p95Ms: 7 },
  ])
})

test('keeps a bounded number of times, the last ones', () => {
  const times = new SearchTimes()
  for (let n = 0; n < limits.searchesMeasured; n++) times.add(k, 'lexical', 1_000)
  for (let n = 0; n < limits.searchesMeasured; n++) times.add(k, 'lexical', 1)
  expect(times.summarize(k)).toEqual([
    { mode: 'lexical', count: limits.searchesMeasured, p50Ms: 1, p95Ms: 1 },
  ])
})

test('measures successful searches, and counts a reranked search by its mode', async () => {
  const times = new SearchTimes()
  await times.measure(k, async () => ({ mode: 'hybrid_rerank' }))
  await expect(times.measure(k, () => Promise.reject(new Error('failed')))).rejects.toThrow('failed')
  expect(times.summarize(k)).toMatchObject([{ mode: 'hybrid', count: 1 }])
})
