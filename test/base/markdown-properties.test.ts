import { expect, test } from 'vitest'
import { markdownProperties } from '../../src/base/markdown-properties.ts'

const long = 20_000

test.each([
  ['spaces', `# a${' '.repeat(long)}b`, 'a'],
  ['brackets', `# ${'['.repeat(long)}`, '['.repeat(200)],
  ['angle brackets', `# ${'<'.repeat(long)}`, '<'.repeat(200)],
  ['quotes in front matter', `---\ntitle: ${'"'.repeat(long)}`, undefined],
])('only the start of a long line is searched for a title: %s', (_, text, title) => {
  expect(markdownProperties(text).title).toBe(title)
})

test('front matter does not set metadata that the runtime and a sync write', () => {
  const text = '---\nlang: en\nsyncFolder: board\nfileHash: abc\ningestParser: native\n---\n# Roadmap'
  expect(markdownProperties(text)).toEqual({ lang: 'en', title: 'Roadmap' })
})
