import { WbError } from '../contract/errors.ts'
import type { McpServerTool, Review } from '../contract/mcp-servers.ts'
import { changeRow } from '../storage/change-row.ts'
import type { RowStore } from '../storage/rows.ts'
import { type AcceptedTool, type McpServerRow, tables } from '../storage/tables.ts'
import { acceptAll, findAcceptedTool, type McpOffer } from './mcp-offer.ts'

/**
 * Accepts all tools of a server whose tools were never accepted or reviewed (trust on first use). Ignores an offer from
 * an earlier URL of the server.
 *
 * @returns the updated server; undefined if it was deleted
 */
export async function acceptFirstOffer(
  rows: RowStore,
  { workspaceId, mcpServerId, url }: McpServerRow,
  offer: McpOffer,
): Promise<McpServerRow | undefined> {
  const changed = await changeRow(rows, tables.mcpServers, [workspaceId, mcpServerId], row =>
    row.reviewedTools === null && row.url === url ? { ...row, reviewedTools: acceptAll(offer) } : row,
  )
  return 'row' in changed ? changed.row : undefined
}

/**
 * Returns the accepted tools of a server after a review.
 *
 * @throws conflict  the server does not offer one of the tools to accept, or the hash of the tool has changed
 */
export function applyReview(
  { reviewedTools }: McpServerRow,
  { tools }: McpOffer,
  accept: Review['accept'],
): Record<string, AcceptedTool> {
  const accepted = accept.map(({ name, hash }) => {
    const tool = tools.find(offered => offered.name === name && offered.hash === hash)
    if (!tool)
      throw new WbError('conflict', `the server does not offer '${name}' as you reviewed it`, {
        hint: 'List its tools, and review them again.',
      })
    return [name, { hash, description: tool.description }] as const
  })
  return Object.fromEntries([...Object.entries(reviewedTools ?? {}), ...accepted])
}

/** Returns the offered tools, then the accepted tools that are no longer offered, each with its review state. */
export function listToolStates(
  { reviewedTools, allowedTools }: McpServerRow,
  { tools }: McpOffer,
): McpServerTool[] {
  const accepted = reviewedTools ?? {}
  const isAllowed = (name: string) => allowedTools?.includes(name) ?? true
  const offered = tools.map(({ name, description, inputSchema, hash }): McpServerTool => {
    const acceptedTool = findAcceptedTool(accepted, name)
    const state = acceptedTool === undefined ? 'new' : acceptedTool.hash === hash ? 'accepted' : 'changed'
    const acceptedDescription = acceptedTool?.description ?? null
    return { name, description, inputSchema, hash, state, acceptedDescription, allowed: isAllowed(name) }
  })
  const names = new Set(tools.map(({ name }) => name))
  const removed = Object.entries(accepted)
    .filter(([name]) => !names.has(name))
    .map(
      ([name, { hash, description }]): McpServerTool => ({
        name,
        description,
        inputSchema: {},
        hash,
        state: 'gone',
        acceptedDescription: description,
        allowed: isAllowed(name),
      }),
    )
  return [...offered, ...removed]
}
