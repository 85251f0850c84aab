import { type AuthContext, viewingAs } from '../access/subject.ts'
import { WbError } from '../contract/errors.ts'
import { principalId } from '../contract/fields.ts'
import { grantsScope } from '../contract/scopes.ts'
import type { AppContext } from './exchange.ts'
import type { IncomingRequest } from './incoming-request.ts'

const viewAsHeader = 'x-view-as-principal'

/**
 * Returns the caller, with the principal that it views the workspace as. Ignores the header unless the caller manages
 * access, or authentication is disabled and the request comes directly from this machine.
 *
 * @throws validation_error  the header is not the ID of a principal
 * @see docs/access.md#view-a-workspace-as-another-principal
 */
export function withViewedPrincipal(
  context: Pick<AppContext, 'isDirect'>,
  incoming: IncomingRequest,
  auth: AuthContext,
): AuthContext {
  const header = incoming.header(viewAsHeader)
  if (header === null || header === '') return auth
  const { subject, mode } = auth
  const mayView = subject
    ? grantsScope(subject.scopes, 'manage:access')
    : mode === 'disabled' && context.isDirect(incoming)
  if (!mayView) return auth
  const { error, data } = principalId.safeParse(header)
  if (error) throw new WbError('validation_error', `${viewAsHeader}: ${error.issues[0]!.message}`)
  return viewingAs(auth, data)
}
