import { decideAccess } from '../access/authorize.ts'
import type { Caller } from '../access/caller.ts'
import { WbError } from '../contract/errors.ts'
import { grantsScope, type Scope, scopesOfRole } from '../contract/scopes.ts'
import { mcpToolAccess } from '../contract/tool-access.ts'

/** Returns the `WWW-Authenticate` header that requests a scope; undefined if no token can have the scope. */
export type RequestScope = (workspaceId: string, required: Scope) => string | undefined

/**
 * Denies a tool call if its user has the required scope but the access token does not, so that the client can
 * request the scope from the user. All other denials are returned as tool results.
 *
 * @throws forbidden  with the challenge of RFC 6750 section 3.1
 */
export function requireTokenScope(
  message: unknown,
  { workspaceId, caller }: { workspaceId: string; caller: Caller },
  requestScope: RequestScope,
): void {
  const { subject } = caller.auth
  const tool = calledTool(message)
  if (!tool || !subject?.tokenScopes) return
  const decision = decideAccess({ rule: mcpToolAccess[tool], workspaceId }, caller)
  const required = decision.allow ? undefined : decision.requiredScope
  if (!required || !grantsScope(subject.role && scopesOfRole[subject.role], required)) return
  const challenge = requestScope(workspaceId, required)
  if (!challenge) return
  throw new WbError('forbidden', `the access token lacks the scope '${required}' of the tool ${tool}`, {
    hint: 'Sign in again with this scope.',
    requiredScope: required,
    headers: { 'www-authenticate': challenge },
  })
}

function calledTool(message: unknown): keyof typeof mcpToolAccess | undefined {
  const { method, params } = (message ?? {}) as { method?: unknown; params?: { name?: unknown } | null }
  const name = params?.name
  if (method !== 'tools/call' || typeof name !== 'string' || !Object.hasOwn(mcpToolAccess, name))
    return undefined
  return name as keyof typeof mcpToolAccess
}
