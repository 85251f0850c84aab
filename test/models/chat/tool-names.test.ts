import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ToolNames } from '../../../src/models/chat/tool-names.ts'

test('keeps valid names, and keeps as much as possible of others', () => {
  const names = new ToolNames(['search_kb', 'mcp:files:read', 'x'.repeat(80), ''])
  expect(names.encode('search_kb')).toBe('search_kb')
  expect(names.encode('mcp:files:read')).toMatch(/^mcp_files_read_[0-9a-f]{8}$/)
  expect(names.encode('x'.repeat(80))).toMatch(/^x{55}_[0-9a-f]{8}$/)
  expect(names.encode('')).toMatch(/^_[0-9a-f]{8}$/)
  expect(names.decode('made:up')).toBe('made:up')
})

test('encodes a name identically in every request, unless the result conflicts with another name', () => {
  const spelled = new ToolNames(['a:b']).encode('a:b')
  expect(new ToolNames(['c', 'a:b', 'd:e']).encode('a:b')).toBe(spelled)
  const crossed = new ToolNames(['a:b', spelled])
  expect(crossed.encode(spelled)).toBe(spelled)
  expect(crossed.encode('a:b')).not.toBe(spelled)
  expect(crossed.decode(crossed.encode('a:b'))).toBe('a:b')
})

test('uses an alias as the name unless it is taken or reserved', () => {
  const names = ['mcp:1:search', 'mcp:2:search', 'mcp:3:search', 'mcp:4:kb', 'mcp:5:long', 'search_kb']
  const aliases = ['issues_search', 'wiki_find', 'wiki_find', 'search_kb', 'x'.repeat(65)]
  const spelled = new ToolNames(names, new Map(aliases.map((alias, at) => [names[at]!, alias])))
  expect(names.map(name => spelled.encode(name))).toEqual([
    'issues_search',
    expect.stringMatching(/^wiki_find_[0-9a-f]{8}$/),
    expect.stringMatching(/^wiki_find_[0-9a-f]{8}$/),
    expect.stringMatching(/^search_kb_[0-9a-f]{8}$/),
    expect.stringMatching(/^x{55}_[0-9a-f]{8}$/),
    'search_kb',
  ])
})

test('encodes any names as valid and unique names and decodes them', () => {
  const name = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('a:b', 'a.b', 'a_b', 'A_b'))
  fc.assert(
    fc.property(fc.array(name, { maxLength: 8 }), fc.array(name, { maxLength: 8 }), (given, aliases) => {
      const names = new ToolNames(given, new Map(given.map((one, at) => [one, aliases[at] ?? ''])))
      const distinct = [...new Set(given)]
      const spellings = distinct.map(one => names.encode(one))
      for (const spelling of spellings) expect(spelling).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
      expect(new Set(spellings).size).toBe(distinct.length)
      expect(spellings.map(spelling => names.decode(spelling))).toEqual(distinct)
    }),
    { numRuns: 100 },
  )
})
