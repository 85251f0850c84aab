import { expect, onTestFinished, test } from 'vitest'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { matchOf } from '../../src/storage/sqlite/full-text-index.ts'
import { all, createCollection, idsOf, key, recordWithText, upsert } from './content-data.ts'

test.each([
  ['What is the lift of a wing?', '"lift" OR "wing"'],
  ['wing WING Wing', '"wing"'],
  ['to be or not to be', '"to" OR "be" OR "or" OR "not"'],
  ['mach-2.5 "flow" title:x*', '"mach" OR "2" OR "5" OR "flow" OR "title" OR "x"'],
  ['naïve Ωmega ½', '"naïve" OR "ωmega" OR "½"'],
  [' "*^(){}:- ', ''],
  ['a\0b', '"b"'],
])('%j becomes the query %s', (text, match) => {
  expect(matchOf(text)).toBe(match)
})

test('a long query uses its first distinct words', () => {
  const text = Array.from({ length: 2_000 }, (_, n) => `w${n}`).join(' ')
  const asked = matchOf(`${text} ${text}`).split(' OR ')
  expect(asked).toHaveLength(256)
  expect(asked[255]).toBe('"w255"')
})

test('a word in the title has more weight than in the text, and word forms are equal', async () => {
  const { content, close } = await openEmbeddedStore({ path: ':memory:' })
  onTestFinished(close)
  await content.write(
    [
      createCollection(),
      upsert(
        recordWithText('text', 'wings and more words', { title: 'other' }),
        recordWithText('title', 'other and more words', { title: 'wings' }),
        recordWithText('none', 'nothing at all here', { title: 'other' }),
        recordWithText('nor', 'nothing at all there', { title: 'another' }),
      ),
    ],
    [],
  )
  const query = { text: 'winged', limit: 9, visibility: all, statistics: 'collection' as const }
  expect(await idsOf(content, await content.lexical!.search(key, query))).toEqual(['title', 'text'])
})
