import { expect, test } from 'vitest'
import { toolDisplayName } from '../../src/cli/chat/tool-name.ts'
import { formatToolName } from '../../src/cli/fields/tool-name.ts'

test('shows a tool ID unchanged if its server name is only an inherited property', () => {
  for (const id of ['mcp:constructor:x', 'mcp:toString:x', 'mcp:__proto__:x'])
    expect(toolDisplayName(id, { docs: 'Docs' })).toBe(id)
  expect(toolDisplayName('mcp:docs:find', { docs: 'Docs' })).toBe('find from Docs')
})

test('escapes control characters in a tool name, so they cannot hide its server', () => {
  expect(toolDisplayName('mcp:docs:search_kb\u009d', { docs: 'Docs' })).toBe('search_kb\\u009d from Docs')
})

test('keeps the name of a server in the configuration that is also a property name', () => {
  expect(formatToolName('mcp:constructor:x', {})).toBe('constructor/x')
})
