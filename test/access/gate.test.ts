import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Caller } from '../../src/access/caller.ts'
import { type Demand, decide, holds } from '../../src/access/gate.ts'
import { anonymousIn, type Subject, verifiedAs } from '../../src/access/subject.ts'
import { type Access, anyCaller, member, needs, open, platform } from '../../src/contract/access.ts'
import { type Scope, scopes } from '../../src/contract/scopes.ts'

const scope = fc.constantFrom(...scopes)
const held = fc.uniqueArray(scope)
const tierOf = (fine: string) => fine.split(':')[0]

describe('holds', () => {
  test('S2.4-12: a scope grants itself', () => {
    fc.assert(fc.property(scope, held, (one, others) => holds([...others, one], one)))
  })

  test('S2.4-13 S2.4-14 S2.4-15 S2.4-16: else only the tier before the colon grants it', () => {
    fc.assert(
      fc.property(held, scope, (some, required) => {
        const others = some.filter(one => one !== required)
        const isCoarse = !required.includes(':')
        return holds(others, required) === (!isCoarse && others.some(one => one === tierOf(required)))
      }),
    )
  })

  test('S2.4-14: the boundary is the colon', () => {
    expect(holds(['write'], 'writeX' as Scope)).toBe(false)
    expect(holds(['write'], 'write:x' as Scope)).toBe(true)
    expect(holds(['write:ingest'], 'write:ingest:x' as Scope)).toBe(true)
  })

  test('S2.4-18: null grants everything, nothing grants nothing', () => {
    fc.assert(fc.property(scope, one => holds(null, one) && !holds([], one)))
  })

  test('more scopes never grant less', () => {
    fc.assert(
      fc.property(
        held,
        held,
        scope,
        (a, b, required) => !holds(a, required) || holds([...a, ...b], required),
      ),
    )
  })

  test('S2.4-11: tools:invoke comes with no tier', () => {
    expect(holds(['read', 'write', 'manage'], 'tools:invoke')).toBe(false)
  })
})

const [here, elsewhere] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222']

function as(fields: Partial<Subject>): Pick<Caller, 'auth'> {
  const subject: Subject = {
    id: 's',
    label: null,
    type: 'apiKey',
    workspaceScopes: [here],
    scopes: [],
    role: null,
    principalId: 's',
    grantSpanMs: null,
    ...fields,
  }
  return { auth: verifiedAs('apiKey', subject) }
}

const signedIn: Access = { kind: 'signedIn' }
const callers = {
  anonymous: { auth: anonymousIn('apiKey') },
  unscoped: as({ workspaceScopes: null, scopes: null }),
  reader: as({ scopes: ['read'] }),
  writer: as({ scopes: ['write'] }),
  ingester: as({ scopes: ['write:ingest'] }),
  bare: as({ scopes: [] }),
  stranger: as({ workspaceScopes: [elsewhere], scopes: ['read', 'write', 'manage'] }),
  nowhere: as({ workspaceScopes: [], scopes: ['read', 'write', 'manage'] }),
} as const
type Name = keyof typeof callers

const yes = 'yes'
const reach = 'authenticated subject has no access to this workspace'
const runtime = 'this operation is for subjects of the whole runtime'
const lacks = (missing: string) => `authenticated subject is missing required scope '${missing}'`

/** Who passes which rule; of the others, why not. */
const table: [rule: string, demand: Demand, answers: Record<Name, string>][] = [
  ['open', { rule: open, workspaceId: undefined }, everyone(yes)],
  ['anyCaller', { rule: anyCaller, workspaceId: undefined }, everyone(yes)],
  [
    'signedIn',
    { rule: signedIn, workspaceId: undefined },
    { ...everyone(yes), anonymous: 'this route needs a signed-in caller' },
  ],
  [
    'platform',
    { rule: platform, workspaceId: undefined },
    { ...everyone(runtime), anonymous: yes, unscoped: yes },
  ],
  [
    'member',
    { rule: member('read:content'), workspaceId: here },
    { ...everyone(yes), stranger: reach, nowhere: reach },
  ],
  [
    'needs write:ingest',
    { rule: needs('write:ingest'), workspaceId: here },
    {
      ...everyone(yes),
      reader: lacks('write:ingest'),
      bare: lacks('write:ingest'),
      stranger: reach,
      nowhere: reach,
    },
  ],
  [
    'needs write',
    { rule: needs('write'), workspaceId: here },
    {
      ...everyone(yes),
      reader: lacks('write'),
      ingester: lacks('write'),
      bare: lacks('write'),
      stranger: reach,
      nowhere: reach,
    },
  ],
]

function everyone(answer: string): Record<Name, string> {
  return Object.fromEntries(Object.keys(callers).map(name => [name, answer])) as Record<Name, string>
}

describe('decide', () => {
  test.each(table)('%s', (_, demand, answers) => {
    for (const [name, answer] of Object.entries(answers)) {
      const decision = decide(demand, callers[name as Name])
      expect(decision.allow ? yes : decision.message, name).toBe(answer)
      if (!decision.allow)
        expect(decision.code).toBe(answer.includes('signed-in') ? 'unauthorized' : 'forbidden')
    }
  })

  test('S5.4-04: reach is decided before scope, so that a stranger learns nothing of what a route needs', () => {
    const decision = decide(
      { rule: needs('manage:keys'), workspaceId: here },
      as({ workspaceScopes: [elsewhere] }),
    )
    expect(decision).toEqual({ allow: false, code: 'forbidden', message: reach })
  })

  test('a missing scope is named for the audit', () => {
    expect(decide({ rule: needs('write:kb'), workspaceId: here }, callers.ingester)).toMatchObject({
      requiredScope: 'write:kb',
    })
  })

  test('S2.4-18: whoever holds all scopes everywhere passes every rule', () => {
    const rules = fc.oneof(
      fc.constantFrom<Access>(open, anyCaller, signedIn, platform, member(null)),
      scope.map(one => needs(one)),
    )
    fc.assert(fc.property(rules, rule => decide({ rule, workspaceId: here }, callers.unscoped).allow))
  })
})
