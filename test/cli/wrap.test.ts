import { spawnSync } from 'node:child_process'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { displayWidth } from '../../src/cli/terminal/terminal-text.ts'
import { wrapCommandLine, wrapLine, wrapWords } from '../../src/cli/terminal/wrap.ts'

test('breaks a line between words, and indents continuation lines below its text', () => {
  expect(wrapLine('  list   one two three four five', 28, 9)).toEqual([
    '  list   one two three four',
    '    five',
  ])
  expect(wrapLine('  list   one two three four five six', 30, 9)).toEqual([
    '  list   one two three four',
    '         five six',
  ])
})

test('keeps a word that is wider than the line whole, so that it can be copied', () => {
  const id = '3fa0ead7-3f49-40c4-b9f7-8ba6152608c7'
  expect(wrapLine(`  id  ${id}`, 38, 6)).toEqual(['  id', `  ${id}`])
  expect(wrapLine(`  id  ${id}`, 20, 6)).toEqual(['  id', id])
})

test('counts no width for styles', () => {
  expect(wrapLine('\x1b[2mone two\x1b[22m three', 13, 2)).toEqual(['\x1b[2mone two\x1b[22m three'])
})

test('keeps every word unchanged at any width', () => {
  const word = fc.stringMatching(/^[a-z日]{1,12}$/)
  fc.assert(
    fc.property(fc.array(word, { minLength: 1 }), fc.integer({ min: 24, max: 80 }), (words, width) => {
      const lines = wrapLine(words.join(' '), width, 4)
      expect(lines.flatMap(line => line.trim().split(' '))).toEqual(words)
      for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(width)
    }),
  )
})

test('aligns continuation lines of a labeled text below the text', () => {
  expect(wrapWords('    may not  change anything, or manage keys', 34)).toBe(
    '    may not  change anything, or\n             manage keys',
  )
  expect(wrapWords('  a label that is long  change anything', 34)).toBe(
    '  a label that is long  change\n    anything',
  )
})

test('moves the description of a suggested command to the next line if it does not fit', () => {
  const line = '  wb login https://…    signs in to a remote runtime'
  expect(wrapWords(line, 60)).toBe(line)
  expect(wrapWords(line, 50)).toBe('  wb login https://…\n      signs in to a remote runtime')
})

test('does not wrap a suggested command', () => {
  const line = '    wb kb search handbook "a question that is rather long for such a terminal"'
  expect(wrapWords(`  ✗ one two three four five six\n${line}`, 24)).toBe(
    `  ✗ one two three four\n    five six\n${line}`,
  )
})

test.each([
  ['  wb config show --json | jq \'.[] | select(.source != "default")\'', 40],
  ['  curl -H "Authorization: Bearer $TOKEN" https://wb.example.com/api/v1/workspaces', 60],
  ['  wb kb search handbook "where is my data stored" --json', 30],
  ['  wb filters create recent --filter \'{"year":{"$gte":1960}}\' it\'s', 20],
])('wraps a suggested command with line continuations: %s', (line, width) => {
  const lines = wrapCommandLine(line, width)
  expect(lines.length).toBeGreaterThan(1)
  expect(lines.map(part => part.replace(/ \\$/, '').trim()).join(' ')).toBe(line.trim())
  for (const part of lines.slice(0, -1)) expect(part).toMatch(/^ {2}.* \\$/)
})

test('a shell reads a wrapped command like the original', () => {
  const line = '  printf "%s|" --filter \'{"a": 1}\' "two words" three four'
  const outputOf = (text: string) => spawnSync('sh', ['-c', text], { encoding: 'utf8' }).stdout
  const broken = wrapCommandLine(line, 24).join('\n')
  expect(broken.split('\n').length).toBeGreaterThan(2)
  expect(outputOf(broken)).toBe(outputOf(line))
})
