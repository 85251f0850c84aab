import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { scopeToWorkspace } from '../../src/access/scope-to-workspace.ts'
import {
  type AuthContext,
  anonymousContext,
  type Subject,
  verifiedContext,
  withRole,
} from '../../src/access/subject.ts'
import { allowsAnonymous } from '../../src/config/config-checks.ts'
import { createEnvironment } from '../../src/config/config-environment.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { runtimeRoutes } from '../../src/contract/runtime-routes.ts'
import { type Role, scopesOfRole } from '../../src/contract/scopes.ts'
import { open, TestClock } from '../harness/runtime.ts'
import { openIssuer } from './issuer.ts'
import { elsewhere, here } from './requests.ts'
import { answerOf, ownSurface } from './stage.ts'
import { bootstrapToken, openWorld, type Posture, type World } from './world.ts'

const modes = ['disabled', 'apiKey', 'oidc', 'any'] as const
let world: World

beforeAll(async () => {
  world = await openWorld(ownSurface())
})
afterAll(() => world.close())

/** What a handler is told of who asks. */
async function seenBy({ app, seen }: Posture, token?: string): Promise<AuthContext> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  seen.length = 0
  const answer = await app.fetch(new Request(`http://localhost/api/v1/workspaces/${here}`, { headers }))
  expect(await answerOf(answer)).toBe('yes')
  expect(seen).toHaveLength(1)
  return seen[0]!
}

describe('what is known of a request', () => {
  test('S1-04 S1-05: without an auth block nobody is asked, and each request is tagged anonymous', async () => {
    const { config } = loadConfig({ path: null }, createEnvironment({}))
    expect(config.auth).toMatchObject({
      mode: 'disabled',
      anonymousPolicy: 'allow',
      bootstrapTokenRef: null,
      oidc: null,
    })
    expect(allowsAnonymous(config)).toBe(true)
    for (const token of [undefined, 'anything'])
      expect(await seenBy(world.posture({}), token)).toMatchObject({
        mode: 'disabled',
        authenticated: false,
        anonymous: true,
        subject: null,
      })
  })

  test.each(modes)('S1-03 S2.1-01 S2.1-03 S2.1-04: nobody, in mode %s', async mode => {
    const auth = await seenBy(world.posture({ ...world.oidc, mode }))
    expect(auth).toMatchObject({ mode, authenticated: false, anonymous: true, subject: null })
  })

  test('S2.1-02 S2.1-04 S2.1-07 S2.1-08 S2.1-09: an API key', async () => {
    const auth = await seenBy(world.posture({ mode: 'apiKey' }), await world.mint(here, ['read', 'write:kb']))
    expect(auth).toMatchObject({
      mode: 'apiKey',
      authenticated: true,
      anonymous: false,
      subject: { type: 'apiKey', workspaceScopes: [here], scopes: ['read', 'write:kb'], role: null },
    })
  })

  test('S2.2-02: in mode any a key and an OIDC token both pass', async () => {
    const posture = world.posture({ ...world.oidc, mode: 'any', anonymousPolicy: 'reject' })
    expect(await seenBy(posture, await world.mint(here, ['read']))).toMatchObject({
      subject: { type: 'apiKey' },
    })
    const token = await world.signIn({ workspaces: [here] })
    expect(await seenBy(posture, token)).toMatchObject({ subject: { type: 'oidc' } })
  })

  test('S2.1-02 S2.1-07 S2.1-08 S2.1-09 S2.4-18: the bootstrap token', async () => {
    for (const mode of ['apiKey', 'oidc', 'any'] as const)
      expect(await seenBy(world.posture({ ...world.oidc, mode }), bootstrapToken)).toMatchObject({
        mode,
        authenticated: true,
        anonymous: false,
        subject: { type: 'bootstrap', workspaceScopes: null, scopes: null },
      })
  })

  test('S2.1-02 S2.1-05 S2.1-06 S2.1-07 S2.1-08 S2.1-09 S5.6-03: an OIDC token without roles', async () => {
    const posture = world.posture({ ...world.oidc, mode: 'oidc' })
    expect(await seenBy(posture, await world.signIn({ workspaces: [here] }))).toMatchObject({
      mode: 'oidc',
      authenticated: true,
      anonymous: false,
      subject: {
        type: 'oidc',
        id: 'someone',
        label: 'someone@example.com',
        workspaceScopes: [here],
        scopes: null,
        role: null,
      },
    })
  })

  test.each<[role: Role]>([['viewer'], ['editor'], ['admin']])(
    'S5.6-01: an OIDC %s holds that tier',
    async role => {
      const token = await world.signIn({ workspaces: null, role })
      expect(await seenBy(world.postures.mapped, token)).toMatchObject({
        subject: { workspaceScopes: null, role, scopes: scopesOfRole[role] },
      })
    },
  )
})

describe('a role of the workspace itself', () => {
  const oidc: Subject = {
    id: 'someone',
    label: null,
    type: 'oidc',
    workspaceScopes: null,
    scopes: scopesOfRole.editor,
    role: 'editor',
    principalId: null,
    keyLifetimeMaxMs: null,
  }
  const knows = async (workspaceId: string, id: string): Promise<Role | undefined> =>
    id === 'someone' ? ({ [here]: 'viewer', [elsewhere]: 'admin' } as const)[workspaceId] : undefined

  test.each<[workspaceId: string, role: Role]>([
    [here, 'viewer'],
    [elsewhere, 'admin'],
    ['33333333-3333-4333-8333-333333333333', 'editor'],
  ])(
    'S5.6-02: overrides the mapped one there, downward and upward, and nowhere else: %s',
    async (workspaceId, role) => {
      const { subject } = await scopeToWorkspace(verifiedContext('oidc', oidc), workspaceId, knows)
      expect(subject).toEqual({ ...oidc, role, scopes: scopesOfRole[role] })
    },
  )

  test('S5.6-02 S5.6-03: changes nothing for who has no mapped role', async () => {
    for (const auth of [
      anonymousContext('any'),
      verifiedContext('any', { ...oidc, role: null, scopes: null }),
      verifiedContext('any', { ...oidc, type: 'apiKey' }),
      verifiedContext('any', { ...oidc, id: 'nobody' }),
    ])
      expect(await scopeToWorkspace(auth, here, knows)).toBe(auth)
  })
})

test('a role of a workspace does not widen the scopes of an access token', () => {
  const subject = { type: 'oidc', role: 'viewer', scopes: ['read'], tokenScopes: ['read', 'write:kb'] }
  const auth = verifiedContext('oidc', subject as unknown as Subject)
  expect(withRole(auth, 'admin', scopesOfRole.admin).subject).toMatchObject({
    role: 'admin',
    scopes: ['read', 'write:kb'],
  })
})

test('nobody has no role to take', () => {
  const nobody = anonymousContext('any')
  expect(withRole(nobody, 'admin', scopesOfRole.admin)).toBe(nobody)
})

describe.each(modes)('mode %s, policy reject', mode => {
  test.each(['/', '/healthz', '/readyz', '/version', '/docs', '/api/v1/openapi.json'])(
    'S4.1-07: %s answers with no header and with a bad one',
    async path => {
      const { app } = world.posture({ ...world.oidc, mode, anonymousPolicy: 'reject' })
      for (const authorization of [undefined, 'Basic d2I6d2I=', 'Bearer nonsense']) {
        const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
        expect(await answerOf(await app.fetch(new Request(`http://localhost${path}`, { headers })))).toBe(
          'yes',
        )
      }
    },
  )
})

test('the operational routes of 4.1 are all among them', () => {
  const paths = Object.values(runtimeRoutes).map(route => route.path)
  expect(paths).toEqual(
    expect.arrayContaining(['/', '/healthz', '/readyz', '/version', '/docs', '/api/v1/openapi.json']),
  )
})

test('S4.2-02: somebody of many workspaces sees those and no other, page by page', async () => {
  const clock = new TestClock()
  const issuer = await openIssuer(clock)
  const { fetch, url, audience } = issuer
  const oidc = { issuer: url, audience, jwksUri: `${url}/jwks` }
  const config = { auth: { mode: 'oidc', anonymousPolicy: 'reject', oidc } }
  const here = await open({ clock, fetch, config })
  const made: string[] = []
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) {
    clock.advance(1)
    made.push(String((await here.sendAsOperator('POST /api/v1/workspaces', { name })).body.workspaceId))
  }
  const own = [made[5]!, made[0]!, made[3]!, made[0]!, elsewhere, made[6]!]
  const token = await issuer.sign({ workspaces: own })
  const seen: string[] = []
  let sizes = ''
  for (let cursor = ''; ; ) {
    const line = `GET /api/v1/workspaces?limit=2${cursor && `&cursor=${cursor}`}`
    const { status, body } = await here.send(line, undefined, { authorization: `Bearer ${token}` })
    expect(status).toBe(200)
    const { items, nextCursor } = body as { items: { workspaceId: string }[]; nextCursor: string | null }
    seen.push(...items.map(({ workspaceId }) => workspaceId))
    sizes += items.length
    if (nextCursor === null) break
    cursor = nextCursor
  }
  expect(seen).toEqual([made[0], made[3], made[5], made[6]])
  expect(sizes).toBe('22')
})
