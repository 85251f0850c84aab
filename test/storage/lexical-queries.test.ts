import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { ContentStore, SearchConstraints } from '../../src/storage/content.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { all, createCollection, idsOf, key, only, recordWithText, upsert } from './content-data.ts'

let content: ContentStore

beforeEach(async () => {
  const store = await openEmbeddedStore({ path: ':memory:' })
  onTestFinished(store.close)
  content = store.content
})

async function store(language: string | null, texts: Record<string, string>): Promise<void> {
  const records = Object.entries(texts).map(([id, text]) => recordWithText(id, text))
  expect(await content.write([createCollection({ language }), upsert(...records)], [])).toEqual({ ok: true })
}

type Options = Partial<SearchConstraints> & { isTyping?: boolean; limit?: number }

function search(text: string, options: Options = {}) {
  return content.lexical!.search(key, {
    text,
    limit: 10,
    statistics: 'collection',
    visibility: all,
    ...options,
  })
}

async function found(text: string, options: Options = {}): Promise<string[]> {
  return idsOf(content, await search(text, options))
}

describe('phrases', () => {
  beforeEach(() =>
    store(null, {
      exact: 'Heat transfer in slender bodies',
      apart: 'The transfer of heat to a wing, and heat alone',
      other: 'A wing in slow flow',
    }),
  )

  test('a result contains the phrase, with its words next to each other and in order', async () => {
    expect(await found('heat transfer')).toEqual(expect.arrayContaining(['exact', 'apart']))
    expect(await found('"heat transfer"')).toEqual(['exact'])
    expect(await found('„heat transfers“ of a wing')).toEqual(['exact'])
    expect(await found('"transfer heat"')).toEqual([])
  })

  test('a result contains every phrase', async () => {
    expect(await found('"heat transfer" "slender bodies"')).toEqual(['exact'])
    expect(await found('"heat transfer" "slow flow"')).toEqual([])
  })

  test('a name with another number is another phrase', async () => {
    await content.write(
      [upsert(recordWithText('seven', 'see figure7'), recordWithText('eight', 'see figure8'))],
      [],
    )
    expect(await found('figure7')).toEqual(['seven', 'eight'])
    expect(await found('"figure7"')).toEqual(['seven'])
  })

  test('a phrase in a title counts', async () => {
    await content.write([upsert(recordWithText('titled', 'nothing', { title: 'On heat transfer' }))], [])
    expect((await found('"heat transfer"')).sort()).toEqual(['exact', 'titled'])
  })

  test('the limit applies to records with the phrase, and does not change scores', async () => {
    const more = Array.from({ length: 30 }, (_, n) => recordWithText(`more${n}`, 'transfer the heat'))
    await content.write([upsert(...more)], [])
    expect(await found('"heat transfer"', { limit: 1 })).toEqual(['exact'])
    const plain = await search('heat transfer', { limit: 50 })
    const [quoted] = await search('"heat transfer"')
    expect(plain).toContainEqual(quoted)
  })

  test('a quotation mark without its counterpart is ignored', async () => {
    expect((await found('"heat')).sort()).toEqual(['apart', 'exact'])
  })
})

describe('a word that is being typed', () => {
  beforeEach(() => store(null, { run: 'He runs fast', flutter: 'Panel flutter', flow: 'Flow past a wing' }))

  test('matches the words that it is the beginning of', async () => {
    expect(await found('flu')).toEqual([])
    expect(await found('flu', { isTyping: true })).toEqual(['flutter'])
    expect((await found('fl', { isTyping: true })).sort()).toEqual(['flow', 'flutter'])
    expect(await found('wing flut', { isTyping: true })).toEqual(['flutter', 'flow'])
  })

  test('matches a word whose stem is shorter', async () => {
    expect(await found('flutteri', { isTyping: true })).toEqual(['flutter'])
    expect(await found('runni', { isTyping: true })).toEqual(['run'])
  })

  test('is complete if a space follows', async () => {
    expect(await found('flo ', { isTyping: true })).toEqual([])
  })
})

describe('a word without a match', () => {
  beforeEach(() => store(null, { flutter: 'Panel flutter', wing: 'A wing', id: 'The column user_id' }))

  test('finds similar words', async () => {
    expect(await found('fluter')).toEqual(['flutter'])
    expect(await found('flutetr of a wing')).toEqual(expect.arrayContaining(['flutter', 'wing']))
    expect(await found('wong')).toEqual(['wing'])
  })

  test('is not replaced if only a filter excludes its matches', async () => {
    await content.write([upsert(recordWithText('late', 'Panel cutter', { payload: { year: 1999 } }))], [])
    const filter = { kind: 'in' as const, key: 'year', values: [1999] }
    expect(await found('cutter', { filter })).toEqual(['late'])
    expect(await found('flutter', { filter })).toEqual([])
  })

  test('is replaced only if at most three others come before it', async () => {
    expect(await found('qqqa qqqb qqqc fluter')).toEqual(['flutter'])
    expect(await found('qqqa qqqb qqqc qqqd fluter')).toEqual([])
  })

  test('is not replaced if it is short, has digits, or is part of a compound that was found', async () => {
    expect(await found('wig2')).toEqual([])
    expect(await found('win')).toEqual([])
    expect(await found('user-name')).toEqual(['id'])
  })
})

test('similar words and completions are those of visible records', async () => {
  await content.write(
    [
      createCollection(),
      upsert(
        recordWithText('mine', 'panel fluster', { payload: { visible_to: ['alice'] } }),
        recordWithText('hidden', 'flutter flutter', { payload: { visible_to: ['bob'] } }),
      ),
    ],
    [],
  )
  const rows = { visibility: only('alice') }
  const reach = { ...rows, statistics: 'visible' as const }
  expect(await found('flutter', reach)).toEqual(['mine'])
  expect(await found('flut', { ...reach, isTyping: true })).toEqual([])
  expect(await found('flus', { ...reach, isTyping: true })).toEqual(['mine'])
})

test('a score depends on visible records only, also for typed and misspelled words', async () => {
  const mine = [recordWithText('a', 'panel flutter'), recordWithText('b', 'a wing')].map(record => ({
    ...record,
    payload: { visible_to: ['alice'] },
  }))
  const hidden = Array.from({ length: 20 }, (_, n) =>
    recordWithText(`h${n}`, `flutter fluid wing number${n}`, { payload: { visible_to: ['bob'] } }),
  )
  const alone = { ...key, name: 'alone' }
  await content.write([createCollection(), upsert(...hidden.slice(0, 9), ...mine, ...hidden.slice(9))], [])
  await content.write(
    [{ ...createCollection(), ...alone } as never, { ...upsert(...mine), ...alone } as never],
    [],
  )
  for (const [text, isTyping] of [
    ['flutter wing', false],
    ['flu', true],
    ['fluttre', false],
  ] as const) {
    const query = { text, isTyping, limit: 9, statistics: 'visible' as const, visibility: only('alice') }
    const scores = async (name: typeof key) =>
      (await content.lexical!.search(name, query)).map(({ score }) => score)
    expect(await scores(key)).toEqual((await scores(alone)).map(score => expect.closeTo(score, 12)))
    expect(await scores(key)).not.toEqual([])
  }
})

test.each([
  ['de', 'Die Häuser der Stadt', 'haus', 'Schiff'],
  ['zh', '我们研究超音速飞行器', '超音速', '图书馆'],
  ['ja', '東京都の図書館で本を読む', '図書館', '美術館'],
  ['th', 'ฉันชอบอ่านหนังสือ', 'หนังสือ', 'กระดาษ'],
  ['tr', 'Kitapları okudum', 'kitap', 'defter'],
])('in %s, %j is found by %j, and not by %j', async (language, text, match, other) => {
  await store(language, { it: text, rest: 'x' })
  expect(await found(match)).toEqual(['it'])
  expect(await found(other)).toEqual([])
})
