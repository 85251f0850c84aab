import { type AccessRequest, authorize } from '../access/authorize.ts'
import type { AuthContext } from '../access/subject.ts'
import type { RequestCredentials } from '../auth/authenticate.ts'
import type { Access } from '../contract/access.ts'
import type { Form, Route } from '../contract/route.ts'
import { clientOf } from './admit.ts'
import type { Exchange, Shared } from './exchange.ts'
import type { Read } from './input.ts'

/** Time in milliseconds after which the caller of a request with a slow body is authorized again. */
export const confirmAfterMs = 1_000

/** Authenticates the caller of a request. */
export function identify(shared: Shared, current: Exchange): AuthContext | Promise<AuthContext> {
  const { incoming, trace } = current
  const { authorization, cookie, operator } = incoming
  if (operator) return operator
  const presented: RequestCredentials = {
    authorization,
    cookie,
    address: clientOf(shared, current),
    requestId: trace.requestId,
    siteOrigin: () => shared.siteOrigin(incoming),
  }
  return shared.authenticate(presented)
}

/** Returns the input of the access gate for a request. */
export function demandOf(shared: Shared, { incoming, workspaceId }: Exchange, rule: Access): AccessRequest {
  if (rule.kind !== 'setup') return { rule, workspaceId }
  const approach = { hasCredential: incoming.authorization !== null, isLocal: shared.isLocal(incoming) }
  return { rule, workspaceId, origin: approach }
}

/** Returns the caller with its rights in the workspace that the path names. */
export async function inWorkspace(
  shared: Shared,
  current: Exchange,
  workspaceId: string | undefined,
): Promise<AuthContext> {
  const auth = current.auth ?? shared.stranger
  current.workspaceId = workspaceId
  if (workspaceId === undefined) return auth
  current.auth = await shared.inWorkspace(auth, workspaceId)
  return current.auth
}

/**
 * Authenticates and authorizes a caller again, because its rights may have changed during a long upload, wait
 * or response.
 *
 * @throws unauthorized, forbidden  when the same request would now be refused
 */
export async function passAgain(shared: Shared, current: Exchange, { access }: Route): Promise<AuthContext> {
  const known = current.auth ?? shared.stranger
  // The bootstrap token is valid for the lifetime of the process, and each use is audited.
  if (access.kind === 'open' || known.subject?.type === 'bootstrap') return known
  current.auth = await identify(shared, current)
  const auth = await inWorkspace(shared, current, current.workspaceId)
  authorize(demandOf(shared, current, access), { auth })
  return auth
}

/** Wraps a streamed body: the caller is authorized again while the handler reads it. */
export function withConfirmedBody(
  { clock }: Shared,
  { body }: Route,
  input: Read['input'],
  confirm: () => Promise<unknown>,
): Read['input'] {
  async function* confirmed(lines: AsyncIterable<unknown>) {
    let askedAt = clock.now()
    for await (const line of lines) {
      if (clock.now() - askedAt >= confirmAfterMs) {
        await confirm()
        askedAt = clock.now()
      }
      yield line
    }
  }
  const confirmedForm = (form: Form<object>): Form<object> => ({
    receive(use) {
      const askedAt = clock.now()
      return form.receive(async upload => {
        if (clock.now() - askedAt >= confirmAfterMs) await confirm()
        return use(upload)
      })
    },
  })
  if (body?.kind === 'ndjson') return { ...input, body: confirmed(input.body as AsyncIterable<unknown>) }
  if (body?.kind === 'multipart') return { ...input, body: confirmedForm(input.body as Form<object>) }
  return input
}
