import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { UsageError } from '../../src/cli/faults.ts'
import { keyWords } from '../../src/cli/key-words.ts'
import { momentAhead, momentPast, spanSeconds } from '../../src/cli/moment.ts'
import { ago, due } from '../../src/cli/output.ts'
import { type Scope, scopes, scopesOfRole } from '../../src/contract/scopes.ts'

const anyway = 'read over HTTP what the workspace holds, as every key of it may'
const trail = 'read the audit trail'
const change = 'change anything'
const rule = 'manage keys or access, or delete the workspace'
const tools = 'have agents call external tools'
const documents = 'add, change and delete documents and records'
const bases = 'make, change and delete knowledge bases and filters'
const services = 'make, change and delete services and tool servers'
const agents = 'make, change and delete agents'
const keys = 'make, rotate and revoke keys'
const access = 'decide who sees what'
const workspace = 'delete the workspace'
const everything = 'change everything: documents, knowledge bases, services and agents'
const managing = 'manage keys and access, and delete the workspace'

const words: [scopes: string, may: string[], mayNot: string[]][] = [
  ['read', ['read everything'], [change, rule, tools]],
  ['read:content', ['search and read documents', anyway], [trail, change, rule, tools]],
  ['read:chat', ['read conversations', anyway], [trail, change, rule, tools]],
  ['read:audit', [anyway, trail], [change, rule, tools]],
  ['write', [anyway, everything, tools], [trail, rule]],
  ['write:ingest', [anyway, documents], [trail, bases, services, agents, rule, tools]],
  ['write:kb', [anyway, bases], [trail, documents, services, agents, rule, tools]],
  ['write:services', [anyway, services], [trail, documents, bases, agents, rule, tools]],
  ['write:agents', [anyway, agents], [trail, documents, bases, services, rule, tools]],
  ['manage', [anyway, trail, managing], [change, tools]],
  ['manage:keys', [anyway, keys], [trail, change, access, workspace, tools]],
  ['manage:access', [anyway, trail, access], [change, keys, workspace, tools]],
  ['manage:workspace', [anyway, workspace], [trail, change, keys, access, tools]],
  ['tools:invoke', [anyway, tools], [trail, change, rule]],
  ['read write', ['read everything', everything, tools], [rule]],
  ['read write manage', ['read everything', everything, managing, tools], []],
  ['read write:ingest write:kb', ['read everything', documents, bases], [services, agents, rule, tools]],
]

describe('what a key may do, in words', () => {
  test.each(words)('%s', (held, may, mayNot) => {
    expect(keyWords(held.split(' ') as Scope[])).toEqual({ may, mayNot })
  })

  test('S2.4-01 S2.4-02: every scope and every role has its words', () => {
    const told = words.map(([held]) => held)
    expect(told).toEqual(expect.arrayContaining([...scopes]))
    expect(told).toEqual(expect.arrayContaining(Object.values(scopesOfRole).map(held => held.join(' '))))
  })

  test('S2.4-13: a fine scope beside its coarse one says nothing more, and nothing is said both ways', () => {
    fc.assert(
      fc.property(fc.subarray([...scopes], { minLength: 1 }), held => {
        const coarse = held.filter(scope => !held.some(other => scope.startsWith(`${other}:`)))
        expect(keyWords(held)).toEqual(keyWords(coarse))
        const { may, mayNot } = keyWords(held)
        expect(may.filter(word => mayNot.includes(word))).toEqual([])
        expect(new Set(may).size).toBe(may.length)
      }),
    )
  })
})

describe('when', () => {
  const now = Date.parse('2026-03-01T12:00:00.000Z')

  test.each([
    ['90d', '2026-05-30T12:00:00.000Z'],
    ['1s', '2026-03-01T12:00:01.000Z'],
    ['15m', '2026-03-01T12:15:00.000Z'],
    ['15min', '2026-03-01T12:15:00.000Z'],
    ['2h', '2026-03-01T14:00:00.000Z'],
    ['1w', '2026-03-08T12:00:00.000Z'],
    ['1y', '2027-03-01T12:00:00.000Z'],
    ['1000y', '3025-07-02T12:00:00.000Z'],
    ['2027-01-01', '2027-01-01T00:00:00.000Z'],
    ['2028-02-29', '2028-02-29T00:00:00.000Z'],
    ['2027-01-01T08:00:00Z', '2027-01-01T08:00:00.000Z'],
    ['2027-01-01t08:00:00.5+02:00', '2027-01-01T06:00:00.500Z'],
  ])('%s is %s', (text, iso) => {
    expect(momentAhead('--expires', text, now)).toBe(iso)
  })

  test.each([
    '',
    'soon',
    '90',
    '-1d',
    '1.5h',
    '90 d',
    '999999y',
    '1001y',
    '2027-02-30',
    '2027-13-01',
    '2027-1-1',
    '01/02/2027',
    '2027-01-01T25:00:00Z',
    '2026-03-01T12:00:00Z',
    '2026-03-01',
    '0d',
  ])('%j is no moment that is to come', text => {
    expect(() => momentAhead('--expires', text, now)).toThrow(UsageError)
  })

  test('a moment that has passed is so long ago, or a date', () => {
    expect(momentPast('--since', '1h', now)).toBe('2026-03-01T11:00:00.000Z')
    expect(momentPast('--since', '2026-02-01', now)).toBe('2026-02-01T00:00:00.000Z')
    expect(() => momentPast('--since', 'yesterday', now)).toThrow(UsageError)
  })

  test.each([
    ['0', 0],
    ['0s', 0],
    ['24h', 86_400],
    ['30d', 2_592_000],
  ])('a span of %s has %i seconds', (text, seconds) => {
    expect(spanSeconds('--grace', text, 2_592_000)).toBe(seconds)
  })

  test.each(['31d', '24', '', 'never'])('%j is no grace', text => {
    expect(() => spanSeconds('--grace', text, 2_592_000)).toThrow(UsageError)
  })

  test.each([
    [0, 'now'],
    [999, 'now'],
    [1_000, 'in 1 s'],
    [90_000, 'in 1 min'],
    [29 * 86_400_000, 'in 29 d'],
    [90 * 86_400_000, '2026-05-30'],
    [-5_000, '5 s ago'],
  ])('what is due in %i ms is due %s', (ms, text) => {
    expect(due(now + ms, now)).toBe(text)
  })

  test('what is no time is a dash', () => {
    expect([due(Number.NaN, now), ago(Number.NaN, now)]).toEqual(['–', '–'])
  })
})
