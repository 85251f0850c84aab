import { type Access, anyCaller, member, needs } from '../../src/contract/access.ts'
import type { Scope } from '../../src/contract/scopes.ts'

const W = '/api/v1/workspaces/:workspaceId'
const conversations = `${W}/agents/:agentId/conversations`

/** The rules of routes that are not built yet, as the specification and the contract give them, by method and path. */
export const later: Readonly<Record<string, Access>> = {
  [`POST ${W}/mcp`]: member(null),
  ...each(member('read:chat'), `POST ${conversations}/:conversationId/messages`),
}

function each(rule: Access, ...lines: string[]): Record<string, Access> {
  return Object.fromEntries(lines.map(line => [line, rule]))
}

function on(path: string, ...methods: string[]): string[] {
  return methods.map(method => `${method} ${path}`)
}

/** Reading is for members, changing asks for a scope. */
function collection(path: string, id: string, scope: Scope): Record<string, Access> {
  const one = `${path}/:${id}`
  return {
    ...each(member('read:content'), ...on(path, 'GET'), ...on(one, 'GET')),
    ...each(needs(scope), ...on(path, 'POST'), ...on(one, 'PATCH', 'DELETE')),
  }
}
