import { AuditTrail } from '../../src/access/audit-trail.ts'
import type { Caller } from '../../src/access/caller.ts'
import { noPrincipal } from '../../src/access/row-access.ts'
import { type AuthContext, operatorContext } from '../../src/access/subject.ts'
import type { Authenticate } from '../../src/auth/authenticate.ts'
import { type Auth, openAuth } from '../../src/auth/open.ts'
import { configSchema } from '../../src/config/schema.ts'
import type { Scope } from '../../src/contract/scopes.ts'
import type { App } from '../../src/http/app.ts'
import type { RouteTopics } from '../../src/http/route-topics.ts'
import { openCursors, Pager } from '../../src/storage/cursor.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { tables } from '../../src/storage/tables.ts'
import { lowCost } from '../harness/key-cost.ts'
import { openAccess } from '../harness/open-access.ts'
import { TestClock } from '../harness/runtime.ts'
import { openIssuer } from './issuer.ts'
import { elsewhere, here } from './requests.ts'
import { createRouteApp, silentLog } from './route-app.ts'

export const bootstrapToken = 'bootstrap-token-of-the-table-tests'

/** An application under one authentication configuration. */
export interface ConfiguredApp {
  readonly app: App
  readonly authenticate: Authenticate
  /** Contexts that the handlers received, in order. */
  readonly seen: AuthContext[]
}

export type AccessFixture = Awaited<ReturnType<typeof openAccessFixture>>

/**
 * Opens a store with two workspaces, an issuer of access tokens, and an application for each authentication
 * configuration.
 */
export async function openAccessFixture(surface: RouteTopics) {
  const clock = new TestClock()
  const store = await openEmbeddedStore({ path: ':memory:', clock })
  const { rows } = store
  const cursors = await openCursors(rows)
  const audit = new AuditTrail({ rows, log: silentLog, clock, replicaId: 'this-process' })
  const issuer = await openIssuer(clock)
  const parts = {
    rows,
    pager: new Pager(rows, cursors),
    cursors,
    audit,
    clock,
    log: silentLog,
    fetch: issuer.fetch,
    tokenKey: 'the-key-that-marks-tokens',
  }
  const now = new Date(clock.now()).toISOString()
  for (const workspaceId of [here, elsewhere])
    await rows.atomic([
      { op: 'insert', table: tables.workspaces, row: { workspaceId, name: workspaceId, createdAt: now } },
    ])

  const opened: Auth[] = []
  const open = (settings: object) => {
    const config = configSchema.parse({ version: 1, controlPlane: null, auth: settings }).auth
    const secrets = { bootstrapToken, clientSecret: undefined, sessionSecrets: [] }
    const auth = openAuth({ ...parts, keyCost: lowCost, config, secrets })
    opened.push(auth)
    return auth
  }
  const configure = (settings: { mode?: AuthContext['mode']; [key: string]: unknown }): ConfiguredApp => {
    const { authenticate } = open(settings)
    const seen: AuthContext[] = []
    const app = createRouteApp(surface, settings.mode ?? 'disabled', authenticate, auth => seen.push(auth))
    return { authenticate, app, seen }
  }
  const oidc = { issuer: issuer.url, audience: issuer.audience, jwksUri: `${issuer.url}/jwks` }
  const roleMapping = { claim: 'role', values: { viewer: 'viewer', editor: 'editor', admin: 'admin' } }
  const any = { mode: 'any', anonymousPolicy: 'reject', oidc } as const
  const { keys } = open({ mode: 'apiKey' })
  const operator = createCaller(operatorContext('apiKey', 'this-process'), audit)
  const keyIds = new Map<string, string>()
  return {
    postures: {
      disabled: configure({ mode: 'disabled' }),
      ignoring: configure({ mode: 'disabled', anonymousPolicy: 'reject' }),
      allow: configure({ ...any, anonymousPolicy: 'allow' }),
      reject: configure(any),
      mapped: configure({ ...any, oidc: { ...oidc, roleMapping } }),
    },
    configure,
    oidc: { oidc },
    signIn: issuer.sign,
    async mint(workspaceId: string, scopes: readonly Scope[], { lastsMs }: { lastsMs?: number } = {}) {
      const expiresAt = lastsMs === undefined ? null : new Date(clock.now() + lastsMs).toISOString()
      const body = { label: 'a key', scopes: [...scopes], expiresAt }
      const { plaintext, key } = await keys.create(workspaceId, body, operator)
      keyIds.set(plaintext, key.keyId)
      return plaintext
    },
    revoke: (workspaceId: string, token: string) =>
      keys.revoke({ workspaceId, keyId: keyIds.get(token)! }, operator),
    pass: ({ ms }: { ms: number }) => clock.advance(ms),
    async close() {
      await Promise.all(opened.map(auth => auth.close()))
      await store.close()
    },
  }
}

function createCaller(auth: AuthContext, audit: AuditTrail): Caller {
  return {
    auth,
    rowAccess: workspaceId => openAccess(noPrincipal, workspaceId),
    signal: new AbortController().signal,
    requestId: 'r',
    site: { origin: 'http://localhost', cookies: null },
    client: '',
    follows: null,
    onDrain: () => () => {},
    can: async () => false,
    async reauthorize() {},
    checkChange() {},
    checkCreator() {},
    recordChange: () => [],
    record: details => audit.draft({ auth, requestId: 'r' }, { action: 'api_key.create', details }).write,
  }
}
