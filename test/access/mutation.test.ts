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
import { allKinds, type Kind } from './kinds.ts'
import { type Row, readRules } from './rules-table.ts'
import { lineOf, ownSurface, routesOf, withRule } from './stage.ts'
import { openWorld, type World } from './world.ts'

const rows = readRules('docs/security.md').filter(row => row.route)
const surface = ownSurface()
let world: World
let kinds: Kind[]

beforeAll(async () => {
  world = await openWorld(surface)
  kinds = await allKinds(world)
})
afterAll(() => world.close())

type Named = readonly [name: string, rule: Access]

/** Every rule there is, and every change of the one that stands; what the gate never reads (`covers`) aside. */
function othersThan(rule: Access): Named[] {
  const all: Named[] = [
    ['open', openToAll],
    ['anyCaller', anyCaller],
    ['signedIn', signedIn],
    ['platform', platform],
    ['operator', operator],
    ['owner', owner],
    ['setup', setupOnly],
    ['member', member(null)],
    ...scopes.map((scope): Named => [`needs ${scope}`, needs(scope)]),
    ['own', ownRecords('read:chat', 'write', 'manage')],
    ...(rule.kind === 'needs' ? [...wider(rule), ...raised(rule)] : []),
    ...(rule.kind === 'ownRecords' ? ofOthers(rule) : []),
  ]
  return all.filter(([, other]) => said(other) !== said(rule))
}

type Needs = Extract<Access, { kind: 'needs' }>

/** Another way in, or none. One that the scope is anyway would be no change: `write` beside `write:kb`. */
function wider(rule: Needs): Named[] {
  const { alternative: _alternative, ...narrow } = rule
  return [
    ['no other way in', narrow],
    ...scopes
      .filter(other => !grantsScope([other], rule.scope))
      .map((other): Named => [`or ${other}`, { ...narrow, alternative: other }]),
  ]
}

/** Other scopes for what others created. One that the scopes include anyway would be no change. */
function ofOthers(rule: Extract<Access, { kind: 'ownRecords' }>): Named[] {
  const included = scopes.filter(
    scope => !grantsScope([rule.scope], scope) && !grantsScope([rule.alternative], scope),
  )
  return included.flatMap((scope): Named[] => [
    [`own, else ${scope}`, { ...rule, scope }],
    [`own, or else ${scope}`, { ...rule, alternative: scope }],
  ])
}

/** A raise by another scope, for another field, for one field less, or none. */
function raised(rule: Needs): Named[] {
  const { extraScope, ...flat } = rule
  if (!extraScope) return []
  return [
    ['no raise', flat],
    ['raised for another field', { ...flat, extraScope: { ...extraScope, condition: changesAnyOf('name') } }],
    ...extraScope.condition.fields.map((field): Named => {
      const condition = changesAnyOf(...extraScope.condition.fields.filter(other => other !== field))
      return [`not raised for ${field}`, { ...flat, extraScope: { ...extraScope, condition } }]
    }),
    ...scopes.map(
      (scope): Named => [`raised by ${scope}`, { ...flat, extraScope: { ...extraScope, scope } }],
    ),
  ]
}

/** A rule, as far as the gate reads it. */
function said(rule: Access): string {
  if (rule.kind === 'ownRecords') return [rule.kind, rule.scope, rule.alternative].join()
  if (rule.kind !== 'needs') return rule.kind
  const { scope, alternative, extraScope } = rule
  return [scope, alternative, extraScope?.condition.fields, extraScope?.scope].join()
}

/** The first kind of caller that the application answers otherwise than the tables say. */
async function disagreement(of: readonly Row[]): Promise<string | undefined> {
  for (const row of of)
    for (const kind of kinds) {
      const found = await kind.ask(row)
      if (found !== kind.expected(row)) return `${row.line}, ${kind.name}: ${found}`
    }
  return undefined
}

test('S1-02 S5.5-03: no rule of a running application can be exchanged for another one unseen', {
  timeout: 120_000,
}, async () => {
  const unseen: string[] = []
  let exchanged = 0
  for (const route of routesOf(surface)) {
    const of = rows.filter(row => row.route === lineOf(route))
    expect(await disagreement(of), 'with its own rule').toBeUndefined()
    for (const [name, rule] of othersThan({ ...route.access })) {
      exchanged++
      if (!(await withRule(route, rule, () => disagreement(of)))) unseen.push(`${lineOf(route)}: ${name}`)
    }
  }
  expect(unseen).toEqual([])
  expect(exchanged).toBeGreaterThan(routesOf(surface).length * 19)
})
