import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type Access,
  anyCaller,
  changesAnyOf,
  member,
  needs,
  openToAll,
  operator,
  owner,
  ownRecords,
  platform,
  setupOnly,
  signedIn,
} from '../../src/contract/access.ts'
import { grantsScope, scopes } from '../../src/contract/scopes.ts'
import { type AccessFixture, openAccessFixture } from './access-fixture.ts'
import { type CallerKind, createCallerKinds } from './caller-kinds.ts'
import { copyRoutes, routeName, routesOf, withReplacedRule } from './route-app.ts'
import { type RuleRow, readRules } from './rules-table.ts'

const rows = readRules('docs/security.md').filter(row => row.route)
const surface = copyRoutes()
let world: AccessFixture
let kinds: CallerKind[]

beforeAll(async () => {
  world = await openAccessFixture(surface)
  kinds = await createCallerKinds(world)
})
afterAll(() => world.close())

type NamedRule = readonly [name: string, rule: Access]

/**
 * Returns every possible rule and every variation of the given one, except those that differ only in `covers`,
 * which access decisions ignore.
 */
function rulesOtherThan(rule: Access): NamedRule[] {
  const all: NamedRule[] = [
    ['open', openToAll],
    ['anyCaller', anyCaller],
    ['signedIn', signedIn],
    ['platform', platform],
    ['operator', operator],
    ['owner', owner],
    ['setup', setupOnly],
    ['member', member(null)],
    ...scopes.map((scope): NamedRule => [`needs ${scope}`, needs(scope)]),
    ['own', ownRecords('read:chat', 'write', 'manage')],
    ...(rule.kind === 'needs' ? [...alternativeVariations(rule), ...extraScopeVariations(rule)] : []),
    ...(rule.kind === 'ownRecords' ? ownRecordsVariations(rule) : []),
  ]
  return all.filter(([, other]) => keyOfRule(other) !== keyOfRule(rule))
}

type Needs = Extract<Access, { kind: 'needs' }>

/**
 * Returns variations of the alternative scope, without those that the required scope includes, such as `write`
 * for `write:kb`.
 */
function alternativeVariations(rule: Needs): NamedRule[] {
  const { alternative: _alternative, ...narrow } = rule
  return [
    ['no other way in', narrow],
    ...scopes
      .filter(other => !grantsScope([other], rule.scope))
      .map((other): NamedRule => [`or ${other}`, { ...narrow, alternative: other }]),
  ]
}

/**
 * Returns variations of the scopes for records of other callers, without those that the required scopes include.
 */
function ownRecordsVariations(rule: Extract<Access, { kind: 'ownRecords' }>): NamedRule[] {
  const included = scopes.filter(
    scope => !grantsScope([rule.scope], scope) && !grantsScope([rule.alternative], scope),
  )
  return included.flatMap((scope): NamedRule[] => [
    [`own, else ${scope}`, { ...rule, scope }],
    [`own, or else ${scope}`, { ...rule, alternative: scope }],
  ])
}

/** Returns variations of the extra scope: another scope, another field, one field less, or none. */
function extraScopeVariations(rule: Needs): NamedRule[] {
  const { extraScope, ...flat } = rule
  if (!extraScope) return []
  return [
    ['no raise', flat],
    ['raised for another field', { ...flat, extraScope: { ...extraScope, condition: changesAnyOf('name') } }],
    ...extraScope.condition.fields.map((field): NamedRule => {
      const condition = changesAnyOf(...extraScope.condition.fields.filter(other => other !== field))
      return [`not raised for ${field}`, { ...flat, extraScope: { ...extraScope, condition } }]
    }),
    ...scopes.map(
      (scope): NamedRule => [`raised by ${scope}`, { ...flat, extraScope: { ...extraScope, scope } }],
    ),
  ]
}

/** Returns a key of the parts of a rule that access decisions depend on. */
function keyOfRule(rule: Access): string {
  if (rule.kind === 'ownRecords') return [rule.kind, rule.scope, rule.alternative].join()
  if (rule.kind !== 'needs') return rule.kind
  const { scope, alternative, extraScope } = rule
  return [scope, alternative, extraScope?.condition.fields, extraScope?.scope].join()
}

interface Mismatch {
  readonly kind: CallerKind
  readonly description: string
}

/** Returns a caller whose actual access differs from the tables. Tries the callers in the given order. */
async function findMismatch(
  of: readonly RuleRow[],
  callers: Iterable<CallerKind>,
): Promise<Mismatch | undefined> {
  for (const kind of callers)
    for (const row of of) {
      const found = await kind.request(row)
      if (found !== kind.expected(row)) return { kind, description: `${row.line}, ${kind.name}: ${found}` }
    }
  return undefined
}

test('S1-02 S5.5-03: the access tables detect every exchanged rule of a running application', {
  timeout: 120_000,
}, async () => {
  const unseen: string[] = []
  // A caller that detected a rule on one route usually detects it on the next, so it is tried first.
  const detectors = new Map<string, CallerKind>()
  let exchanged = 0
  for (const route of routesOf(surface)) {
    const of = rows.filter(row => row.route === routeName(route))
    expect((await findMismatch(of, kinds))?.description, 'with its own rule').toBeUndefined()
    for (const [name, rule] of rulesOtherThan({ ...route.access })) {
      exchanged++
      const known = detectors.get(name)
      const callers = known ? new Set([known, ...kinds]) : kinds
      const mismatch = await withReplacedRule(route, rule, () => findMismatch(of, callers))
      if (mismatch) detectors.set(name, mismatch.kind)
      else unseen.push(`${routeName(route)}: ${name}`)
    }
  }
  expect(unseen).toEqual([])
  expect(exchanged).toBeGreaterThan(routesOf(surface).length * 19)
})
