import { expect, test } from 'vitest'
import { permissionFor } from '../../../src/agents/tools/permission.ts'
import type { ToolRules } from '../../../src/contract/agents.ts'

const allow = { permission: 'allow' } as const
const ask = { permission: 'ask' } as const
const deny = { permission: 'deny' } as const

test.each<[string, ToolRules, string, string, string]>([
  ['no rule allows', {}, 'search_kb', 'allow', 'allow'],
  ['no rule that fits allows', { 'mcp:*': deny }, 'search_kb', 'allow', 'allow'],
  ['what is allowed asks after reading', { search_kb: allow }, 'search_kb', 'allow', 'ask'],
  ['unless it says otherwise', { '*': { ...allow, afterReading: 'allow' } }, 'x', 'allow', 'allow'],
  ['or is stricter', { '*': { ...allow, afterReading: 'deny' } }, 'x', 'allow', 'deny'],
  ['what asks goes on to ask', { x: ask }, 'x', 'ask', 'ask'],
  ['what is denied stays so', { x: deny }, 'x', 'deny', 'deny'],
  ['the longest pattern decides', { '*': deny, 'mcp:*': allow, 'mcp:a:*': ask }, 'mcp:a:b', 'ask', 'ask'],
  ['an id decides over a pattern as long', { 'ab*': deny, abc: ask }, 'abc', 'ask', 'ask'],
  ['a pattern fits its own beginning', { 'abc*': deny }, 'abc', 'deny', 'deny'],
  ['without a star only the id itself fits', { search: deny }, 'search_kb', 'allow', 'allow'],
  ['names of the language are no rules', {}, 'constructor', 'allow', 'allow'],
])('%s', (_, rules, id, before, after) => {
  expect(permissionFor(rules, { id }, { afterReading: false })).toBe(before)
  expect(permissionFor(rules, { id }, { afterReading: true })).toBe(after)
})
