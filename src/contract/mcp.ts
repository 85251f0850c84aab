import { z } from 'zod'
import { member } from './access.ts'
import type { ErrorCode } from './errors.ts'
import { limits } from './limits.ts'
import { route } from './route.ts'

const path = '/api/v1/workspaces/:workspaceId/mcp'
const access = member(null)
const errors = ['workspace_not_found'] as const satisfies ErrorCode[]
const stateless =
  'Streamable HTTP without sessions: each request is independent, and `initialize` is not required. A request that the protocol refuses gets a JSON-RPC error with a matching HTTP status.'

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
    description: `${stateless} \`Accept\` must name \`application/json\` and \`text/event-stream\`. Rights are checked for each tool call: without them, the result has \`isError\` and the outcome \`denied\`.`,
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
    description: `${stateless} The stream has no messages in this version. \`Accept\` must name \`text/event-stream\`.`,
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
