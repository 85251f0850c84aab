import pMap from 'p-map'
import { systemClock } from '../../base/clock.ts'
import { TimedOut, withTimeout } from '../../base/deadline.ts'
import { shellWord } from '../../base/shell-word.ts'
import type { Client } from '../../client/client.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'
import { type McpServer, type McpServerTool, mcpServers } from '../../contract/mcp-servers.ts'
import { formatCounted } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { toolsAwaitingReview } from './review.ts'

/** Maximum time to wait for a server. */
const waitMs = 3_000
const concurrencyMax = 8

/** Tools of a server that a user must review before agents can use them. */
export interface PendingReview {
  readonly server: McpServer
  readonly tools: readonly McpServerTool[]
}

/**
 * Returns the servers with tools that currently need a review. Skips servers that are disabled or do not
 * respond in time.
 */
export async function findPendingReviews(
  client: Client,
  servers: readonly McpServer[],
  signal: AbortSignal,
): Promise<PendingReview[]> {
  const enabledServers = servers.filter(server => server.enabled)
  const reviews = await pMap(
    enabledServers,
    async server => ({ server, tools: await fetchPendingTools(client, server, signal) }),
    { concurrency: concurrencyMax },
  )
  return reviews.filter(({ tools }) => tools.length > 0)
}

async function fetchPendingTools(
  client: Client,
  { workspaceId, mcpServerId }: McpServer,
  signal: AbortSignal,
): Promise<readonly McpServerTool[]> {
  const params = { workspaceId, mcpServerId }
  const listTools = (timeoutSignal: AbortSignal) =>
    client.call(mcpServers.tools, { params }, { signal: timeoutSignal })
  try {
    return toolsAwaitingReview(await withTimeout(systemClock, waitMs, listTools, signal))
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof TimedOut || error instanceof WbError || error instanceof Unreachable) return []
    throw error
  }
}

/** Returns lines with the number of tools that need a review, and the command to review them. */
export function pendingReviewLines({ server: { label }, tools }: PendingReview): string[] {
  const verb = tools.length === 1 ? 'needs' : 'need'
  return [
    `  ${formatCounted(tools.length, 'tool')} of ${plainLine(label)} ${verb} review:`,
    `    ${reviewCommand(label)}`,
  ]
}

/** Like {@link pendingReviewLines}, but on one line without the server's name. */
export function pendingReviewSummary({ server: { label }, tools }: PendingReview): string {
  return `${formatCounted(tools.length, 'tool')} not reviewed: ${reviewCommand(label)}`
}

function reviewCommand(label: string): string {
  return `wb mcp servers review ${shellWord(plainLine(label))}`
}
