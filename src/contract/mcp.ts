import { z } from 'zod'
import { member } from './access.ts'
import type { ErrorCode } from './errors.ts'
import { limits } from './limits.ts'
import { route } from './route.ts'

const path = '/api/v1/workspaces/:workspaceId/mcp'
const access = member(null)
const errors = ['workspace_not_found'] as const satisfies ErrorCode[]
const statelessNote =
  'Uses Streamable HTTP without sessions: each request is independent, and `initialize` is not required. Requests that violate the protocol get a JSON-RPC error with a matching HTTP status.'

/**
 * Routes of the MCP server of a workspace.
 *
 * @see docs/mcp.md
 */
export const mcp = {
  send: route({
    method: 'POST',
    path,
    summary: 'Call the tools of a workspace through MCP',
    description: `${statelessNote} \`Accept\` must contain \`application/json\` and \`text/event-stream\`. Rights are checked for each tool call. If the caller does not have them, the result has \`isError\` and the outcome \`denied\`.`,
    access,
    body: {
      kind: 'json',
      mode: 'lenient',
      schema: z.unknown().meta({ description: 'a JSON-RPC 2.0 message' }),
      limitBytes: limits.jsonBodyBytes,
    },
    replies: { 200: 'text/event-stream', 202: null },
    errors,
  }),
  listen: route({
    method: 'GET',
    path,
    summary: 'Open an MCP event stream',
    description: `${statelessNote} The stream contains no messages in this version. \`Accept\` must contain \`text/event-stream\`.`,
    access,
    replies: { 200: 'text/event-stream' },
    errors,
  }),
  end: route({
    method: 'DELETE',
    path,
    summary: 'End an MCP session',
    access,
    replies: { 200: null },
    errors,
  }),
}
