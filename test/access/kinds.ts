import { decideAccess } from '../../src/access/authorize.ts'
import { type AuthContext, operatorContext } from '../../src/access/subject.ts'
import type { Access } from '../../src/contract/access.ts'
import { WbError } from '../../src/contract/errors.ts'
import { roles, type Scope, scopes, scopesOfRole } from '../../src/contract/scopes.ts'
import { withWrongSecret } from '../harness/wrong-secret.ts'
import { elsewhere, here, requestOf } from './requests.ts'
import { type Answer, answerForScopes, type Column, type Row } from './rules-table.ts'
import { answerOf } from './stage.ts'
import { bootstrapToken, type Posture, type World } from './world.ts'

/** One kind of caller, as it comes to a running application. */
export interface Kind {
  readonly name: string
  /** What the reviewed text says of it. */
  expected(row: Row): Answer
  /** What the application answers to a row of a route. */
  ask(row: Row): Promise<string>
  /** What the same caller is told by the gate alone, of a rule that no route carries. */
  weigh(rule: Access, workspaceId: string | undefined): Promise<string>
}

/** Every kind of caller, with credentials of a real store and a real signing key. */
export async function allKinds({ postures, mint, revoke, signIn, pass }: World): Promise<Kind[]> {
  const { disabled, ignoring, allow, reject, mapped } = postures
  const { admin } = scopesOfRole
  const both = ['write', 'manage:access'] as const
  const revoked = await mint(here, admin)
  await revoke(here, revoked)
  const expired = await mint(here, admin, { lastsMs: 1_000 })
  const overdue = await signIn({ workspaces: null, lastsMs: 1_000 })
  pass({ ms: 3_600_000 })

  return [
    kind('nobody, mode disabled', 'disabled', disabled),
    kind('a credential that is not looked at', 'disabled, with a credential', ignoring, 'anything'),
    kind('nobody, mode disabled, policy reject', 'reject', ignoring),
    kind('nobody, policy allow', 'allow', allow),
    kind('nobody, policy reject', 'reject', reject),
    kind('the bootstrap token', 'bootstrap', reject, bootstrapToken),
    kind('an OIDC token of all, without roles', 'operator', reject, await signIn({ workspaces: null })),
    owner(reject),
    kind(
      'an OIDC viewer of all',
      'viewer of all',
      mapped,
      await signIn({ workspaces: null, role: 'viewer' }),
    ),
    ...(await Promise.all(
      roles.flatMap(role => [
        mint(here, scopesOfRole[role]).then(token => kind(`a key of role ${role}`, role, reject, token)),
        signIn({ workspaces: [elsewhere, here], role }).then(token =>
          kind(`an OIDC ${role}`, role, mapped, token),
        ),
      ]),
    )),
    ...(await Promise.all(
      [...scopes.map(scope => [scope]), both].map(held =>
        mint(here, held).then(token => kind(`a key with only ${held.join(' and ')}`, held, reject, token)),
      ),
    )),
    kind('an admin key of another workspace', 'other workspace', reject, await mint(elsewhere, admin)),
    kind(
      'an OIDC admin of another',
      'other workspace',
      mapped,
      await signIn({ workspaces: [elsewhere], role: 'admin' }),
    ),
    kind('an OIDC token of no workspace', 'other workspace', reject, await signIn({ workspaces: [] })),
    kind('a revoked admin key', 'invalid', reject, revoked),
    kind('an expired admin key', 'invalid', reject, expired),
    kind('an expired OIDC token', 'invalid', reject, overdue),
    kind('a wrong secret', 'invalid', reject, withWrongSecret(await mint(here, admin))),
  ]
}

function kind(name: string, is: Column | readonly Scope[], posture: Posture, token?: string): Kind {
  const authorization = token === undefined ? null : `Bearer ${token}`
  const headers: Record<string, string> = authorization === null ? {} : { authorization }
  return {
    name,
    expected: row => (typeof is === 'string' ? row.answers[is] : answerForScopes(row, is)),
    ask: async row => answerOf(await posture.app.fetch(requestOf(row, headers))),
    weigh: (rule, workspaceId) =>
      told(async () => {
        if (rule.kind === 'open') return undefined
        const siteOrigin = () => 'http://localhost'
        const presented = { authorization, cookie: null, client: '', requestId: 'r', siteOrigin }
        return judge(rule, workspaceId, await posture.authenticate(presented))
      }),
  }
}

/** Whoever owns the data directory, who asks in process. */
function owner({ app }: Posture): Kind {
  const operator = operatorContext('any', 'this-process')
  return {
    name: 'the owner of the data directory',
    expected: row => row.answers.bootstrap,
    ask: async row => answerOf(await app.fetch(requestOf(row, {}), { operator })),
    weigh: (rule, workspaceId) => told(async () => judge(rule, workspaceId, operator)),
  }
}

function judge(rule: Access, workspaceId: string | undefined, auth: AuthContext): number | undefined {
  const decision = decideAccess({ rule, workspaceId }, { auth })
  if (decision.allow) return undefined
  return new WbError(decision.code, decision.message).status
}

/** A status of refusal, or of an error that was thrown, in the words of the tables. */
async function told(act: () => Promise<number | undefined>): Promise<string> {
  try {
    return String((await act()) ?? 'yes')
  } catch (error) {
    if (error instanceof WbError) return String(error.status)
    throw error
  }
}
