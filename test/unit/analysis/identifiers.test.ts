import { expect, test } from 'vitest'
import { type Analyzer, openAnalyzer } from '../../../src/base/analysis/analyzer.ts'

const terms = (analyzer: Analyzer, text: string) => [...analyzer.countTerms(text).counts.keys()]

test.each([
  ['user_id', ['user', 'id', 'userid']],
  ['userId', ['user', 'id', 'userid']],
  ['HTTPServer2', ['http', 'server2', 'server', 'httpserver2']],
  ['E_FOO-12', ['e', 'foo', '12', 'efoo12']],
  ['v1.2.3', ['v1.2.3', '1.2.3', 'v1', '2', '3']],
  ['lodash@4.17.21', ['lodash', '4.17.21', '4', '17', '21']],
  ['1.2.0-beta.1', ['1.2.0', 'beta']],
  ['src/base/user_map.ts', ['src', 'base', 'usermap', 'user', 'map', 'ts', 'usermapt', 'srcbaseusermapt']],
  ['C:\\temp\\log.txt', ['c', 'temp', 'log', 'txt', 'logtxt', 'templogtxt']],
  ['std::vector', ['std', 'vector', 'stdvector']],
  ['ann@example.com', ['ann', 'exampl', 'com', 'examplecom', 'annexamplecom']],
  ['2024-01-15', ['2024.01.15', '2024', '01', '15']],
  ['C++', ['c', 'c++']],
  ['F#', ['f', 'f#']],
  ['PDFs', ['pdf']],
  ['sha256', ['sha256', 'sha']],
])('%s has the terms %j', async (text, expected) => {
  expect(terms(await openAnalyzer({ language: 'auto' }), text)).toEqual(expect.arrayContaining(expected))
})

test.each([
  ['a sentence.Next one', 'sentence'],
  ['word--word', 'word'],
  ['wait...what', 'wait'],
])('%s has no joined word across a pause', async (text, part) => {
  const found = terms(await openAnalyzer({ language: 'auto' }), text)
  expect(found).toContain(part === 'sentence' ? 'sentenc' : part)
  expect(found).not.toContain('wordword')
  expect(found).not.toContain('waitwhat')
})

test.each([
  ['userid', 'user_id'],
  ['user-id', 'userId'],
  ['usermap', 'src/userMap.ts'],
  ['1.2.3', 'release v1.2.3'],
  ['v1.2.3', 'release 1.2.3-rc.1'],
  ['server', 'HTTPServer2'],
  ['2024/01/15', 'on 2024-01-15'],
])('%s finds %s', async (query, text) => {
  const analyzer = await openAnalyzer({ language: 'auto' })
  const { counts } = analyzer.countTerms(text)
  expect(analyzer.parseQuery(query).terms.some(({ term }) => counts.has(term))).toBe(true)
})

test('a base64 text is not split at each change of case', async () => {
  const analyzer = await openAnalyzer({ language: 'auto' })
  expect(terms(analyzer, 'aGVsbG8gd29ybGQgaGVsbG8gd29ybGQ')).toHaveLength(1)
})
