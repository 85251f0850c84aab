import { expect, test } from 'vitest'
import { parseCondition } from '../../src/cli/passages/parse-condition.ts'
import { rankingOptions, requireClearQuestion } from '../../src/cli/passages/ranking-options.ts'

test.each([
  [{}, {}],
  [{ mode: 'hybrid' }, { hybrid: true }],
  [{ mode: 'lexical' }, { hybrid: true, lexicalWeight: 1 }],
  [
    { mode: 'vector', rerank: false },
    { hybrid: false, rerank: false },
  ],
  [{ lexicalWeight: 0 }, { hybrid: true, lexicalWeight: 0 }],
  [
    { mode: 'hybrid', lexicalWeight: 0.5, rerank: true },
    { hybrid: true, lexicalWeight: 0.5, rerank: true },
  ],
] as const)('the settings %j are the options %j', (settings, options) => {
  expect(JSON.parse(JSON.stringify(rankingOptions(settings)))).toEqual(options)
})

test.each(['lexical', 'vector'] as const)('rejects a weight with --mode %s', mode => {
  expect(() => rankingOptions({ mode, lexicalWeight: 0 })).toThrow(
    `--lexical-weight cannot be combined with --mode ${mode}`,
  )
})

const one = { all: false, searchAllCommand: 'wb search' }
const all = { ...one, all: true }

test.each([
  [['papers', 'why?'], one],
  [['why?'], one],
  [['why?'], all],
  [['papers', 'why?'], { ...one, saved: 'recent' }],
])('accepts the arguments %j', (words, options) => {
  expect(() => requireClearQuestion(words, options)).not.toThrow()
})

test.each([
  [['papers', 'why', 'so?'], one, ['wb kb search "papers why so?"', 'wb kb search papers "why so?"']],
  [['why', 'so?'], all, ['wb search "why so?"']],
  [['why?'], { ...all, saved: 'my filter' }, ['wb kb search NAME QUESTION --saved "my filter"']],
])('suggests commands instead of %j', (words, options, next) => {
  expect(() => requireClearQuestion(words, options)).toThrow(expect.objectContaining({ next }))
})

test.each([
  [{}, undefined],
  [{ filter: '{"lang":"en"}' }, { lang: 'en' }],
  [{ where: ['lang = en'] }, { lang: 'en' }],
  [{ where: ['lang = en', 'lang = de'] }, { lang: { $in: ['en', 'de'] } }],
  [{ where: ['lang in (en, de)', 'lang = fr'] }, { lang: { $in: ['en', 'de', 'fr'] } }],
  [{ where: ['lang in (en)'] }, { lang: 'en' }],
  [{ where: ['lang = en', 'tag = a'] }, { $and: [{ lang: 'en' }, { tag: 'a' }] }],
  [{ filter: '{"a":1}', where: ['lang = en'] }, { $and: [{ a: 1 }, { lang: 'en' }] }],
  [{ where: ['not lang = en', 'tag = a'] }, { $and: [{ tag: 'a' }, { $not: { lang: 'en' } }] }],
  [{ where: ['lang = en or lang = de'] }, { $or: [{ lang: 'en' }, { lang: 'de' }] }],
])('the flags %j are the condition %j', (flags, condition) => {
  expect(parseCondition(flags)).toEqual(condition)
})

test.each(['[]', 'null', '"a"', '{"a"', '5'])('rejects the filter %s', filter => {
  expect(() => parseCondition({ filter })).toThrow(`--filter is not a JSON object: ${filter}`)
})
