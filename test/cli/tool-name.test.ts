import { expect, test } from 'vitest'
import { toolDisplayName } from '../../src/cli/chat/tool-name.ts'
import { formatToolName } from '../../src/cli/fields/tool-name.ts'

test('a model that names a tool of a server which only every object has, is shown what it said', () => {
  for (const id of ['mcp:constructor:x', 'mcp:toString:x', 'mcp:__proto__:x'])
    expect(toolDisplayName(id, { docs: 'Docs' })).toBe(id)
  expect(toolDisplayName('mcp:docs:find', { docs: 'Docs' })).toBe('find of Docs')
})

test('a tool whose name would take the name of its server away is not taken for another', () => {
  expect(toolDisplayName('mcp:docs:search_kb\u009d', { docs: 'Docs' })).toBe('search_kb\\u009d of Docs')
})

test('a server that the configuration calls so keeps its name', () => {
  expect(formatToolName('mcp:constructor:x', {})).toBe('constructor/x')
})
