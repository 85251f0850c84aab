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
import {
  type AccessFixture,
  bootstrapToken,
  type ConfiguredApp,
  openAccessFixture,
} from './access-fixture.ts'
import { openIssuer } from './issuer.ts'
import { elsewhere, here } from './requests.ts'
import { answerOf, copyRoutes } from './route-app.ts'

const modes = ['disabled', 'apiKey', 'oidc', 'any'] as const
let world: AccessFixture

beforeAll(async () => {
  world = await openAccessFixture(copyRoutes())
})
afterAll(() => world.close())

/** Sends a request and returns the context that its handler received. */
async function contextFor({ app, seen }: ConfiguredApp, token?: string): Promise<AuthContext> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  seen.length = 0
  const answer = await app.fetch(new Request(`http://localhost/api/v1/workspaces/${here}`, { headers }))
  expect(await answerOf(answer)).toBe('yes')
  expect(seen).toHaveLength(1)
  return seen[0]!
}

describe('authentication context', () => {
  test('S1-04 S1-05: without an auth block, every request is anonymous and its credential is ignored', async () => {
    const { config } = loadConfig({ path: null }, createEnvironment({}))
    expect(config.auth).toMatchObject({
      mode: 'disabled',
      anonymousPolicy: 'allow',
      bootstrapTokenRef: null,
      oidc: null,
    })
    expect(allowsAnonymous(config)).toBe(true)
    for (const token of [undefined, 'anything'])
      expect(await contextFor(world.configure({}), token)).toMatchObject({
        mode: 'disabled',
        authenticated: false,
        anonymous: true,
        subject: null,
      })
  })

  test.each(modes)(
    'S1-03 S2.1-01 S2.1-03 S2.1-04: a request without a credential is anonymous in mode %s',
    async mode => {
      const auth = await contextFor(world.configure({ ...world.oidc, mode }))
      expect(auth).toMatchObject({ mode, authenticated: false, anonymous: true, subject: null })
    },
  )

  test('S2.1-02 S2.1-04 S2.1-07 S2.1-08 S2.1-09: an API key sets its subject', async () => {
    const auth = await contextFor(
      world.configure({ mode: 'apiKey' }),
      await world.mint(here, ['read', 'write:kb']),
    )
    expect(auth).toMatchObject({
      mode: 'apiKey',
      authenticated: true,
      anonymous: false,
      subject: { type: 'apiKey', workspaceScopes: [here], scopes: ['read', 'write:kb'], role: null },
    })
  })

  test('S2.2-02: mode any accepts both an API key and an OIDC token', async () => {
    const posture = world.configure({ ...world.oidc, mode: 'any', anonymousPolicy: 'reject' })
    expect(await contextFor(posture, await world.mint(here, ['read']))).toMatchObject({
      subject: { type: 'apiKey' },
    })
    const token = await world.signIn({ workspaces: [here] })
    expect(await contextFor(posture, token)).toMatchObject({ subject: { type: 'oidc' } })
  })

  test('S2.1-02 S2.1-07 S2.1-08 S2.1-09 S2.4-18: the bootstrap token sets an operator subject', async () => {
    for (const mode of ['apiKey', 'oidc', 'any'] as const)
      expect(await contextFor(world.configure({ ...world.oidc, mode }), bootstrapToken)).toMatchObject({
        mode,
        authenticated: true,
        anonymous: false,
        subject: { type: 'bootstrap', workspaceScopes: null, scopes: null },
      })
  })

  test('S2.1-02 S2.1-05 S2.1-06 S2.1-07 S2.1-08 S2.1-09 S5.6-03: an OIDC token without roles sets a subject without a role', async () => {
    const posture = world.configure({ ...world.oidc, mode: 'oidc' })
    expect(await contextFor(posture, await world.signIn({ workspaces: [here] }))).toMatchObject({
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
    'S5.6-01: an OIDC %s holds the scopes of that role',
    async role => {
      const token = await world.signIn({ workspaces: null, role })
      expect(await contextFor(world.postures.mapped, token)).toMatchObject({
        subject: { workspaceScopes: null, role, scopes: scopesOfRole[role] },
      })
    },
  )
})

describe('role of a principal in a workspace', () => {
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
  const roleIn = async (workspaceId: string, id: string): Promise<Role | undefined> =>
    id === 'someone' ? ({ [here]: 'viewer', [elsewhere]: 'admin' } as const)[workspaceId] : undefined

  test.each<[workspaceId: string, role: Role]>([
    [here, 'viewer'],
    [elsewhere, 'admin'],
    ['33333333-3333-4333-8333-333333333333', 'editor'],
  ])(
    'S5.6-02: replaces the mapped role only in its workspace, whether higher or lower: %s',
    async (workspaceId, role) => {
      const { subject } = await scopeToWorkspace(verifiedContext('oidc', oidc), workspaceId, roleIn)
      expect(subject).toEqual({ ...oidc, role, scopes: scopesOfRole[role] })
    },
  )

  test('S5.6-02 S5.6-03: has no effect on callers without a mapped role', async () => {
    for (const auth of [
      anonymousContext('any'),
      verifiedContext('any', { ...oidc, role: null, scopes: null }),
      verifiedContext('any', { ...oidc, type: 'apiKey' }),
      verifiedContext('any', { ...oidc, id: 'nobody' }),
    ])
      expect(await scopeToWorkspace(auth, here, roleIn)).toBe(auth)
  })
})

test('the role of a principal does not widen the scopes of an access token', () => {
  const subject = { type: 'oidc', role: 'viewer', scopes: ['read'], tokenScopes: ['read', 'write:kb'] }
  const auth = verifiedContext('oidc', subject as unknown as Subject)
  expect(withRole(auth, 'admin', scopesOfRole.admin).subject).toMatchObject({
    role: 'admin',
    scopes: ['read', 'write:kb'],
  })
})

test('an anonymous caller cannot take a role', () => {
  const nobody = anonymousContext('any')
  expect(withRole(nobody, 'admin', scopesOfRole.admin)).toBe(nobody)
})

describe.each(modes)('mode %s with anonymousPolicy reject', mode => {
  test.each(['/', '/healthz', '/readyz', '/version', '/docs', '/api/v1/openapi.json'])(
    'S4.1-07: %s responds without a credential and with an invalid one',
    async path => {
      const { app } = world.configure({ ...world.oidc, mode, anonymousPolicy: 'reject' })
      for (const authorization of [undefined, 'Basic d2I6d2I=', 'Bearer nonsense']) {
        const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
        expect(await answerOf(await app.fetch(new Request(`http://localhost${path}`, { headers })))).toBe(
          'yes',
        )
      }
    },
  )
})

test('covers every operational route of section 4.1', () => {
  const paths = Object.values(runtimeRoutes).map(route => route.path)
  expect(paths).toEqual(
    expect.arrayContaining(['/', '/healthz', '/readyz', '/version', '/docs', '/api/v1/openapi.json']),
  )
})

test('S4.2-02: a caller with several workspaces lists exactly those, page by page', async () => {
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
