import { decideAccess } from '../../src/access/authorize.ts'
import { type AuthContext, operatorContext } from '../../src/access/subject.ts'
import type { Access } from '../../src/contract/access.ts'
import { WbError } from '../../src/contract/errors.ts'
import { roles, type Scope, scopes, scopesOfRole } from '../../src/contract/scopes.ts'
import { withWrongSecret } from '../harness/wrong-secret.ts'
import { type AccessFixture, bootstrapToken, type ConfiguredApp } from './access-fixture.ts'
import { elsewhere, here, requestOf } from './requests.ts'
import { answerOf } from './route-app.ts'
import { type Answer, answerForScopes, type Column, type RuleRow } from './rules-table.ts'

/** A kind of caller with its expected and actual access. */
export interface CallerKind {
  readonly name: string
  /** Returns the reviewed answer of a table row for this caller. */
  expected(row: RuleRow): Answer
  /** Sends the request of a row to the application and returns the answer in the words of the tables. */
  request(row: RuleRow): Promise<string>
  /** Evaluates a rule without sending a request, for rules that belong to no route. */
  evaluate(rule: Access, workspaceId: string | undefined): Promise<string>
}

/** Returns every kind of caller, with credentials from a real store and a real signing key. */
export async function createCallerKinds({
  postures,
  mint,
  revoke,
  signIn,
  pass,
}: AccessFixture): Promise<CallerKind[]> {
  const { disabled, ignoring, allow, reject, mapped } = postures
  const { admin } = scopesOfRole
  const both = ['write', 'manage:access'] as const
  const revoked = await mint(here, admin)
  await revoke(here, revoked)
  const expired = await mint(here, admin, { lastsMs: 1_000 })
  const overdue = await signIn({ workspaces: null, lastsMs: 1_000 })
  pass({ ms: 3_600_000 })

  return [
    createCallerKind('no credential, mode disabled', 'disabled', disabled),
    createCallerKind('an unverified credential', 'disabled, with a credential', ignoring, 'anything'),
    createCallerKind('no credential, mode disabled, policy reject', 'reject', ignoring),
    createCallerKind('no credential, policy allow', 'allow', allow),
    createCallerKind('no credential, policy reject', 'reject', reject),
    createCallerKind('the bootstrap token', 'bootstrap', reject, bootstrapToken),
    createCallerKind(
      'an OIDC token for all workspaces, without roles',
      'operator',
      reject,
      await signIn({ workspaces: null }),
    ),
    createOwner(reject),
    createCallerKind(
      'an OIDC viewer of all workspaces',
      'viewer of all',
      mapped,
      await signIn({ workspaces: null, role: 'viewer' }),
    ),
    ...(await Promise.all(
      roles.flatMap(role => [
        mint(here, scopesOfRole[role]).then(token =>
          createCallerKind(`a key of role ${role}`, role, reject, token),
        ),
        signIn({ workspaces: [elsewhere, here], role }).then(token =>
          createCallerKind(`an OIDC ${role}`, role, mapped, token),
        ),
      ]),
    )),
    ...(await Promise.all(
      [...scopes.map(scope => [scope]), both].map(held =>
        mint(here, held).then(token =>
          createCallerKind(`a key with only ${held.join(' and ')}`, held, reject, token),
        ),
      ),
    )),
    createCallerKind(
      'an admin key of another workspace',
      'other workspace',
      reject,
      await mint(elsewhere, admin),
    ),
    createCallerKind(
      'an OIDC admin of another workspace',
      'other workspace',
      mapped,
      await signIn({ workspaces: [elsewhere], role: 'admin' }),
    ),
    createCallerKind(
      'an OIDC token of no workspace',
      'other workspace',
      reject,
      await signIn({ workspaces: [] }),
    ),
    createCallerKind('a revoked admin key', 'invalid', reject, revoked),
    createCallerKind('an expired admin key', 'invalid', reject, expired),
    createCallerKind('an expired OIDC token', 'invalid', reject, overdue),
    createCallerKind('a wrong secret', 'invalid', reject, withWrongSecret(await mint(here, admin))),
  ]
}

function createCallerKind(
  name: string,
  is: Column | readonly Scope[],
  posture: ConfiguredApp,
  token?: string,
): CallerKind {
  const authorization = token === undefined ? null : `Bearer ${token}`
  const headers: Record<string, string> = authorization === null ? {} : { authorization }
  return {
    name,
    expected: row => (typeof is === 'string' ? row.answers[is] : answerForScopes(row, is)),
    request: async row => answerOf(await posture.app.fetch(requestOf(row, headers))),
    evaluate: (rule, workspaceId) =>
      answerFrom(async () => {
        if (rule.kind === 'open') return undefined
        const siteOrigin = () => 'http://localhost'
        const presented = { authorization, cookie: null, client: '', requestId: 'r', siteOrigin }
        return rejectionStatus(rule, workspaceId, await posture.authenticate(presented))
      }),
  }
}

/** Returns the owner of the data directory, who sends requests in process. */
function createOwner({ app }: ConfiguredApp): CallerKind {
  const operator = operatorContext('any', 'this-process')
  return {
    name: 'the owner of the data directory',
    expected: row => row.answers.bootstrap,
    request: async row => answerOf(await app.fetch(requestOf(row, {}), { operator })),
    evaluate: (rule, workspaceId) => answerFrom(async () => rejectionStatus(rule, workspaceId, operator)),
  }
}

function rejectionStatus(
  rule: Access,
  workspaceId: string | undefined,
  auth: AuthContext,
): number | undefined {
  const decision = decideAccess({ rule, workspaceId }, { auth })
  if (decision.allow) return undefined
  return new WbError(decision.code, decision.message).status
}

/** Returns the status of a rejection or a thrown error, in the words of the tables. */
async function answerFrom(act: () => Promise<number | undefined>): Promise<string> {
  try {
    return String((await act()) ?? 'yes')
  } catch (error) {
    if (error instanceof WbError) return String(error.status)
    throw error
  }
}
