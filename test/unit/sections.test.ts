import { expect, test } from 'vitest'
import { hasSections, sectionsAt } from '../../src/knowledge/chunk/sections.ts'

/** Returns the section of the first occurrence of each word. */
const sectionsOf = (text: string, ...words: string[]) =>
  sectionsAt(
    text,
    words.map(word => text.indexOf(word)),
  )

test('a section is the path of its headings', () => {
  const text = [
    'intro',
    '# Security',
    'first',
    '## Revoke a **key** ##',
    'second',
    '#### Skips `a` level',
    'third',
    '## [Rotate](keys.md) C#',
    'fourth',
    '# Other',
    'fifth',
  ].join('\n')
  expect(sectionsOf(text, 'intro', 'first', '## Revoke', 'second', 'third', 'fourth', 'fifth')).toEqual([
    undefined,
    'Security',
    'Security > Revoke a key',
    'Security > Revoke a key',
    'Security > Revoke a key > Skips a level',
    'Security > Rotate C#',
    'Other',
  ])
})

test.each([
  ['a code block', '# A\n```sh\n# comment\n~~~\n# more\n```\nend', 'A'],
  ['a longer code block', '# A\n````\n```\n# comment\n```\n````\nend', 'A'],
  ['front matter', '---\n# comment\ntitle: T\n---\nend', undefined],
  ['a word', '# A\n#hashtag\n####### seven\nend', 'A'],
  ['an empty heading', '# A\n#\n## ##\nend', 'A'],
  ['lines of Windows', '# A\r\n## B\r\nend', 'A > B'],
  ['a long heading', `# ${'a'.repeat(500)}\nend`, 'a'.repeat(100)],
])('%s', (_, text, section) => {
  expect(sectionsOf(text, 'end')).toEqual([section])
})

test('takes linear time', () => {
  const texts = [`# ${' #'.repeat(2_000_000)}\nend`, '# a\n'.repeat(500_000), `# ${'['.repeat(4_000_000)}`]
  const started = performance.now()
  for (const text of texts) sectionsAt(text, [text.length])
  expect(performance.now() - started).toBeLessThan(5_000)
})

test.each([
  ['text/markdown; charset=utf-8', null, true],
  ['text/plain', 'notes/README.MD', true],
  ['text/plain', 'setup.sh', false],
  [null, null, false],
])('a document of type %s and name %s: %s', (fileType, fileName, expected) => {
  expect(hasSections(fileType, fileName)).toBe(expected)
})
