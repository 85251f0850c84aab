import { type AccessRequest, authorize } from '../access/authorize.ts'
import type { AuthContext } from '../access/subject.ts'
import type { RequestCredentials } from '../auth/authenticate.ts'
import type { Access } from '../contract/access.ts'
import type { PendingForm, Route } from '../contract/route.ts'
import { clientAddress } from './admit.ts'
import type { AppContext, Exchange } from './exchange.ts'
import type { ValidatedInput } from './input-reader.ts'

/** Time in milliseconds after which the caller of a request with a slow body is authorized again. */
export const reauthorizeAfterMs = 1_000

/** Authenticates the caller of a request. */
export function authenticateRequest(
  shared: AppContext,
  current: Exchange,
): AuthContext | Promise<AuthContext> {
  const { incoming, trace } = current
  const { authorization, cookie, operator } = incoming
  if (operator) return operator
  const presented: RequestCredentials = {
    authorization,
    cookie,
    address: clientAddress(shared, current),
    requestId: trace.requestId,
    siteOrigin: () => shared.siteOrigin(incoming),
  }
  return shared.authenticate(presented)
}

/** Returns the input of the authorization of a request. */
export function accessRequestOf(
  shared: AppContext,
  { incoming, workspaceId }: Exchange,
  rule: Access,
): AccessRequest {
  if (rule.kind !== 'setup') return { rule, workspaceId }
  const origin = { hasCredential: incoming.authorization !== null, isLocal: shared.isLocal(incoming) }
  return { rule, workspaceId, origin }
}

/** Returns the caller with its rights in the workspace that the path names. */
export async function scopeRequestToWorkspace(
  shared: AppContext,
  current: Exchange,
  workspaceId: string | undefined,
): Promise<AuthContext> {
  const auth = current.auth ?? shared.anonymous
  current.workspaceId = workspaceId
  if (workspaceId === undefined) return auth
  current.auth = await shared.scopeToWorkspace(auth, workspaceId)
  return current.auth
}

/**
 * Authenticates and authorizes a caller again, because its rights may have changed during a long upload, wait
 * or response.
 *
 * @throws unauthorized, forbidden  when the same request would now be refused
 */
export async function reauthorizeRequest(
  shared: AppContext,
  current: Exchange,
  { access }: Route,
): Promise<AuthContext> {
  const known = current.auth ?? shared.anonymous
  // The bootstrap token is valid for the lifetime of the process, and each use is audited.
  if (access.kind === 'open' || known.subject?.type === 'bootstrap') return known
  current.auth = await authenticateRequest(shared, current)
  const auth = await scopeRequestToWorkspace(shared, current, current.workspaceId)
  authorize(accessRequestOf(shared, current, access), { auth })
  return auth
}

/** Wraps a streamed body: the caller is authorized again while the handler reads it. */
export function withReauthorizedBody(
  { clock }: AppContext,
  { body }: Route,
  input: ValidatedInput['input'],
  confirm: () => Promise<unknown>,
): ValidatedInput['input'] {
  async function* confirmed(lines: AsyncIterable<unknown>) {
    let askedAt = clock.now()
    for await (const line of lines) {
      if (clock.now() - askedAt >= reauthorizeAfterMs) {
        await confirm()
        askedAt = clock.now()
      }
      yield line
    }
  }
  const confirmedForm = (form: PendingForm<object>): PendingForm<object> => ({
    receive(use) {
      const askedAt = clock.now()
      return form.receive(async upload => {
        if (clock.now() - askedAt >= reauthorizeAfterMs) await confirm()
        return use(upload)
      })
    },
  })
  if (body?.kind === 'ndjson') return { ...input, body: confirmed(input.body as AsyncIterable<unknown>) }
  if (body?.kind === 'multipart') return { ...input, body: confirmedForm(input.body as PendingForm<object>) }
  return input
}
