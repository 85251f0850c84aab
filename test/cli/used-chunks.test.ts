import { expect, test } from 'vitest'
import { usedChunks } from '../../src/cli/chat/used-chunks.ts'

const base = '00000000-0000-4000-8000-0000000000b1'
const chunk = (chunkId: string, documentId: string) => ({ chunkId, knowledgeBaseId: base, documentId })

test('returns the best passage of each document, without attachments', () => {
  const rows = [
    ['c1', base, 'd1'],
    ['c2', base, 'd1'],
    ['a1', null, null],
    ['c3', base, 'd2'],
  ]
  expect(usedChunks({ metadata: { context_chunks: JSON.stringify(rows) } })).toEqual([
    chunk('c1', 'd1'),
    chunk('c3', 'd2'),
  ])
})

test.each(['', '{', '{}', '[1]', '[["c"]]', '[["c", "no id", "d"]]'])('returns nothing for %j', rows => {
  expect(usedChunks({ metadata: { context_chunks: rows } })).toEqual([])
})
