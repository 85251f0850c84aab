import { expect, test } from 'vitest'
import { permissionFor } from '../../../src/agents/tools/permission.ts'
import type { ToolRules } from '../../../src/contract/agents.ts'

const allow = { permission: 'allow' } as const
const ask = { permission: 'ask' } as const
const deny = { permission: 'deny' } as const

test.each<[string, ToolRules, string, string, string]>([
  ['a tool without a rule is allowed', {}, 'search_kb', 'allow', 'allow'],
  ['a tool without a matching rule is allowed', { 'mcp:*': deny }, 'search_kb', 'allow', 'allow'],
  ['an allowed tool asks after reading', { search_kb: allow }, 'search_kb', 'allow', 'ask'],
  [
    'an allowed tool can be allowed after reading',
    { '*': { ...allow, afterReading: 'allow' } },
    'x',
    'allow',
    'allow',
  ],
  [
    'an allowed tool can be denied after reading',
    { '*': { ...allow, afterReading: 'deny' } },
    'x',
    'allow',
    'deny',
  ],
  ['a tool that asks also asks after reading', { x: ask }, 'x', 'ask', 'ask'],
  ['a denied tool is also denied after reading', { x: deny }, 'x', 'deny', 'deny'],
  ['the longest pattern decides', { '*': deny, 'mcp:*': allow, 'mcp:a:*': ask }, 'mcp:a:b', 'ask', 'ask'],
  ['an ID wins over a pattern of its length', { 'ab*': deny, abc: ask }, 'abc', 'ask', 'ask'],
  ['a pattern matches the text before its star', { 'abc*': deny }, 'abc', 'deny', 'deny'],
  ['a pattern without a star matches only that ID', { search: deny }, 'search_kb', 'allow', 'allow'],
  ['properties of Object.prototype are not rules', {}, 'constructor', 'allow', 'allow'],
])('%s', (_, rules, id, before, after) => {
  expect(permissionFor(rules, { id }, false)).toBe(before)
  expect(permissionFor(rules, { id }, true)).toBe(after)
})
