import { type Access, member } from '../../src/contract/access.ts'

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
