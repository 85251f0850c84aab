import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type AccessRequest, authorize, decideAccess, ungrantableScope } from '../../src/access/authorize.ts'
import type { Caller } from '../../src/access/caller.ts'
import { anonymousContext, type Subject, verifiedContext } from '../../src/access/subject.ts'
import {
  type Access,
  anyCaller,
  changesAnyOf,
  member,
  needs,
  openToAll,
  operator,
  platform,
  setupOnly,
  signedIn,
} from '../../src/contract/access.ts'
import { grantsScope, type Scope, scopes } from '../../src/contract/scopes.ts'

const scope = fc.constantFrom(...scopes)
const held = fc.uniqueArray(scope)
const tierOf = (fine: string) => fine.split(':')[0]

describe('grantsScope', () => {
  test('S2.4-12: a scope grants itself', () => {
    fc.assert(fc.property(scope, held, (one, others) => grantsScope([...others, one], one)))
  })

  test('S2.4-13 S2.4-14 S2.4-15 S2.4-16: a fine-grained scope is otherwise granted only by the tier before its colon', () => {
    fc.assert(
      fc.property(held, scope, (some, required) => {
        const others = some.filter(one => one !== required)
        const isCoarse = !required.includes(':')
        return grantsScope(others, required) === (!isCoarse && others.some(one => one === tierOf(required)))
      }),
    )
  })

  test('S2.4-14: compares the tier up to the colon', () => {
    expect(grantsScope(['write'], 'writeX' as Scope)).toBe(false)
    expect(grantsScope(['write'], 'write:x' as Scope)).toBe(true)
    expect(grantsScope(['write:ingest'], 'write:ingest:x' as Scope)).toBe(true)
  })

  test('S2.4-18: null grants every scope, and an empty list grants none', () => {
    fc.assert(fc.property(scope, one => grantsScope(null, one) && !grantsScope([], one)))
  })

  test('additional scopes never remove access', () => {
    fc.assert(
      fc.property(
        held,
        held,
        scope,
        (a, b, required) => !grantsScope(a, required) || grantsScope([...a, ...b], required),
      ),
    )
  })

  test('S2.4-11: no tier grants tools:invoke', () => {
    expect(grantsScope(['read', 'write', 'manage'], 'tools:invoke')).toBe(false)
  })
})

const [here, elsewhere] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222']

function callerWith(fields: Partial<Subject>): Pick<Caller, 'auth'> {
  const subject: Subject = {
    id: 's',
    label: null,
    type: 'apiKey',
    workspaceScopes: [here],
    scopes: [],
    role: null,
    principalId: 's',
    keyLifetimeMaxMs: null,
    ...fields,
  }
  return { auth: verifiedContext('apiKey', subject) }
}

const callers = {
  anonymous: { auth: anonymousContext('apiKey') },
  open: { auth: anonymousContext('disabled') },
  unscoped: callerWith({ workspaceScopes: null, scopes: null }),
  reader: callerWith({ scopes: ['read'] }),
  writer: callerWith({ scopes: ['write'] }),
  ingester: callerWith({ scopes: ['write:ingest'] }),
  bare: callerWith({ scopes: [] }),
  stranger: callerWith({ workspaceScopes: [elsewhere], scopes: ['read', 'write', 'manage'] }),
  nowhere: callerWith({ workspaceScopes: [], scopes: ['read', 'write', 'manage'] }),
} as const
type Name = keyof typeof callers

const yes = 'yes'
const unknown = 'this route requires an authenticated caller'
const reach = 'authenticated subject has no access to this workspace'
const noSetup = 'setting up the runtime requires its bootstrap token'
const runtime = 'this operation requires access to the whole runtime'
const lacks = (missing: string) => `authenticated subject is missing required scope '${missing}'`
const outside = { stranger: reach, nowhere: reach }

/** Expected decision for each caller: allowed, or the reason of the rejection. */
const table: [rule: string, demand: AccessRequest, answers: Record<Name, string>][] = [
  ['open', { rule: openToAll, workspaceId: undefined }, sameForAll(yes)],
  ['anyCaller', { rule: anyCaller, workspaceId: undefined }, sameForAll(yes)],
  [
    'S4.3-08 signedIn',
    { rule: signedIn, workspaceId: undefined },
    { ...sameForAll(yes), anonymous: unknown, open: unknown },
  ],
  [
    'S4.2-04 S4.2-05 S5.4-02 S5.4-03: platform',
    { rule: platform, workspaceId: undefined },
    { ...sameForAll(runtime), anonymous: yes, open: yes, unscoped: yes },
  ],
  [
    'operator [security rule 17]',
    { rule: operator, workspaceId: undefined },
    { ...sameForAll(runtime), anonymous: unknown, open: yes, unscoped: yes },
  ],
  [
    'setup, from an unknown origin [security rule 17]',
    { rule: setupOnly, workspaceId: undefined },
    sameForAll(noSetup),
  ],
  [
    'setup, from this machine [security rule 17]',
    { rule: setupOnly, workspaceId: undefined, source: { hasCredential: false, isLocal: true } },
    { ...sameForAll(noSetup), open: yes },
  ],
  [
    'setup, from this machine with an unverified credential [security rule 17]',
    { rule: setupOnly, workspaceId: undefined, source: { hasCredential: true, isLocal: true } },
    sameForAll(noSetup),
  ],
  [
    'setup, from elsewhere [security rule 17]',
    { rule: setupOnly, workspaceId: undefined, source: { hasCredential: false, isLocal: false } },
    sameForAll(noSetup),
  ],
  [
    'S5.4-01 S5.4-02 S5.4-03: member',
    { rule: member('read:content'), workspaceId: here },
    { ...sameForAll(yes), ...outside },
  ],
  [
    'S5.5-16: needs write:ingest',
    { rule: needs('write:ingest'), workspaceId: here },
    { ...sameForAll(yes), reader: lacks('write:ingest'), bare: lacks('write:ingest'), ...outside },
  ],
  [
    'S4.2-07: needs write',
    { rule: needs('write'), workspaceId: here },
    {
      ...sameForAll(yes),
      reader: lacks('write'),
      ingester: lacks('write'),
      bare: lacks('write'),
      ...outside,
    },
  ],
  [
    'needs write:kb or write:ingest',
    { rule: needs('write:kb').orElse('write:ingest'), workspaceId: here },
    { ...sameForAll(yes), reader: lacks('write:kb'), bare: lacks('write:kb'), ...outside },
  ],
]

function sameForAll(answer: string): Record<Name, string> {
  return Object.fromEntries(Object.keys(callers).map(name => [name, answer])) as Record<Name, string>
}

const raisedRule = needs('write').requireIf(changesAnyOf('rlacEnabled'), 'manage:access')

describe('decideAccess', () => {
  test.each(table)('%s', (_, demand, answers) => {
    for (const [name, answer] of Object.entries(answers)) {
      const decision = decideAccess(demand, callers[name as Name])
      expect(decision.allow ? yes : decision.message, name).toBe(answer)
      if (!decision.allow)
        expect(decision.code).toBe([unknown, noSetup].includes(answer) ? 'unauthorized' : 'forbidden')
    }
  })

  test('S5.4-04 S5.5-03: checks workspace access before scopes, so outsiders cannot learn the required scope', () => {
    const decision = decideAccess(
      { rule: needs('manage:keys'), workspaceId: here },
      callerWith({ workspaceScopes: [elsewhere] }),
    )
    const hint = 'Use an API key of this workspace.'
    expect(decision).toEqual({ allow: false, code: 'forbidden', message: reach, hint })
  })

  test('S6-05: reports the missing scope for the audit trail', () => {
    expect(decideAccess({ rule: needs('write:kb'), workspaceId: here }, callers.ingester)).toMatchObject({
      requiredScope: 'write:kb',
    })
  })

  test.each<[changed: string[], held: Scope[], missing: Scope | null]>([
    [[], ['write'], null],
    [['name'], ['write'], null],
    [['rlacEnabled'], ['write'], 'manage:access'],
    [['name', 'rlacEnabled'], ['write', 'manage:keys'], 'manage:access'],
    [['rlacEnabled'], ['write', 'manage:access'], null],
    [['rlacEnabled'], ['write', 'manage'], null],
    [['rlacEnabled'], ['manage'], 'write'],
  ])('S4.2-08: changing %j with %j lacks %j', (changed, scopes, missing) => {
    const decision = decideAccess({ rule: raisedRule, workspaceId: here, changed }, callerWith({ scopes }))
    expect(decision.allow ? null : decision.requiredScope).toBe(missing)
  })

  test('S2.4-18 S5.5-02: a caller with all scopes in all workspaces passes every rule', () => {
    const rules = fc.oneof(
      fc.constantFrom<Access>(member(null), raisedRule),
      scope.map(one => needs(one)),
    )
    fc.assert(
      fc.property(rules, rule => {
        const demand = { rule, workspaceId: here, changed: ['rlacEnabled'] }
        return decideAccess(demand, callers.unscoped).allow && decideAccess(demand, callers.anonymous).allow
      }),
    )
  })

  test('no scopes or role give access to another workspace', () => {
    const rules = fc.oneof(
      fc.constantFrom<Access>(member(null)),
      scope.map(one => needs(one)),
    )
    fc.assert(
      fc.property(rules, fc.option(held), (rule, scopes) => {
        const caller = callerWith({ workspaceScopes: [elsewhere], scopes })
        return !decideAccess({ rule, workspaceId: here }, caller).allow
      }),
    )
  })

  test('a rule that does not match the path of its route throws for every caller', () => {
    const misplaced: AccessRequest[] = [
      ...[openToAll, anyCaller, signedIn, platform, operator, setupOnly].map(rule => ({
        rule,
        workspaceId: here,
      })),
      ...[member(null), needs('write')].map(rule => ({ rule, workspaceId: undefined })),
    ]
    for (const demand of misplaced)
      for (const caller of Object.values(callers))
        expect(() => decideAccess(demand, caller)).toThrow('does not match the path of its route')
  })
})

test('the bootstrap token and the owner of the data directory can use setup routes from any address [security rule 17]', () => {
  const demand = { rule: setupOnly, workspaceId: undefined }
  for (const type of ['bootstrap', 'system'] as const)
    expect(decideAccess(demand, callerWith({ type, workspaceScopes: null, scopes: null })).allow).toBe(true)
})

describe('authorize', () => {
  test('throws the decision of decideAccess as an error', () => {
    const demand = { rule: needs('write:kb'), workspaceId: here }
    expect(authorize(demand, callers.writer)).toBeUndefined()
    expect(() => authorize(demand, callers.reader)).toThrow(
      expect.objectContaining({
        code: 'forbidden',
        hint: 'Use an API key with the scope write:kb, or ask a workspace administrator for one.',
        facts: expect.objectContaining({ requiredScope: 'write:kb' }),
      }),
    )
    expect(() => authorize({ rule: signedIn, workspaceId: undefined }, callers.open)).toThrow(
      expect.objectContaining({ code: 'unauthorized' }),
    )
  })
})

describe('ungrantableScope [security rule 7]', () => {
  const subjectOf = (held: readonly Scope[] | null) => callerWith({ scopes: held }).auth.subject

  test('lets anonymous callers and holders of all scopes or manage grant every scope', () => {
    for (const subject of [null, subjectOf(null), subjectOf(['manage'])])
      expect(ungrantableScope(subject, scopes)).toBeUndefined()
  })

  test('lets other callers grant the scopes they hold, and returns the first scope they do not hold', () => {
    fc.assert(
      fc.property(held, held, (own, wanted) => {
        fc.pre(!own.includes('manage'))
        const first = wanted.find(
          one => !grantsScope(own, one) && !(one === 'tools:invoke' && own.includes('write')),
        )
        return ungrantableScope(subjectOf(own), wanted) === first
      }),
    )
  })

  test.each<[own: Scope[], wanted: Scope[], refused: Scope | undefined]>([
    [['manage:keys'], ['read'], 'read'],
    [['manage:keys'], ['manage:keys'], undefined],
    [['manage:keys'], ['manage'], 'manage'],
    [['manage:keys', 'write'], ['write:ingest', 'write', 'tools:invoke'], undefined],
    [['manage:keys', 'write:ingest'], ['tools:invoke'], 'tools:invoke'],
    [['manage:keys', 'write:ingest'], ['write:ingest', 'write'], 'write'],
  ])('%j granting %j: rejected scope is %j', (own, wanted, refused) => {
    expect(ungrantableScope(subjectOf(own), wanted)).toBe(refused)
  })
})
