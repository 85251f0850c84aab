import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Caller } from '../../src/access/caller.ts'
import type { documents } from '../../src/contract/documents.ts'
import { createChunker } from '../../src/knowledge/chunk/index.ts'
import { readDocumentText } from '../../src/mcp/document-text.ts'
import { RouteCaller, type RouteHandler } from '../../src/mcp/route-caller.ts'
import { chunkTexts } from '../harness/chunk-texts.ts'

/** The route that lists the chunks of one document. */
function chunksOf(texts: readonly string[], chunkerId: string): RouteHandler<typeof documents.chunks> {
  return ({ query: { limit, cursor = '0' } }) => {
    const start = Number(cursor)
    const body = texts.slice(start, start + limit).map((text, at) => ({
      id: `d:${start + at}`,
      chunkIndex: start + at,
      text,
      payload: { 'chunker.id': chunkerId },
    }))
    const hasMore = start + limit < texts.length
    return { status: 200, body, headers: hasMore ? { 'x-next-cursor': String(start + limit) } : undefined }
  }
}

/** Reads all pages of a text in order. */
async function pagesOf(texts: readonly string[], chunkerId: string, max: { chunks: number; chars: number }) {
  const rest = new RouteCaller('w', {} as Caller, { note() {} })
  const pages: string[] = []
  let cursor: string | undefined
  do {
    const asked = {
      knowledgeBaseId: 'k',
      documentId: 'd',
      cursor,
      chunksMax: max.chunks,
      charsMax: max.chars,
    }
    const page = await readDocumentText(rest, chunksOf(texts, chunkerId), asked)
    pages.push(page.text)
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined)
  return pages
}

const service = { engine: 'langchain_ts', chunkUnit: null, minChunkSize: null, overlapSize: null }

test('the pages of a text whose chunks overlap are the text', async () => {
  // Lines are longer than the shortest overlap that is recognized, because chunks can overlap by one line.
  const word = fc.string({
    unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyzäöü🦜'),
    minLength: 8,
    maxLength: 16,
  })
  const between = fc.constantFrom(' ', '. ', '\n')
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('recursive', 'line'),
      fc.array(fc.tuple(word, between), { minLength: 1, maxLength: 200 }),
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 2, max: 300 }),
      async (strategy, words, chunks, chars) => {
        // Numbered, because overlaps in a repetitive text are ambiguous.
        const text = words.map(([one, space], at) => `${one}${at}${space}`).join('')
        const chunker = createChunker({ ...service, strategy, maxChunkSize: 120 })
        const pages = await pagesOf(chunkTexts(chunker, text), chunker.id, { chunks, chars })
        expect(pages.join('')).toBe(text)
        for (const page of pages) expect(page.length).toBeLessThanOrEqual(chars)
      },
    ),
    { numRuns: 200 },
  )
})

test('chunks of sentences without a common text are separated', async () => {
  const texts = ['One sentence.', 'Another one. ', 'A third.']
  expect(await pagesOf(texts, 'sentence:1', { chunks: 1, chars: 100 })).toEqual([
    'One sentence.\n',
    'Another one. ',
    'A third.',
  ])
})

test('a few common characters by coincidence are not an overlap', async () => {
  const texts = ['a ball', 'look at it']
  expect(await pagesOf(texts, 'recursive-char:1', { chunks: 9, chars: 100 })).toEqual(['a balllook at it'])
})
