import { mcpChatTools, mcpToolAccess } from '../../contract/tool-access.ts'

/** Permissions that `--allow` can grant. Read-only tools need none. */
export const mcpPermissions = ['write:ingest', 'write:kb', 'chat'] as const
export type McpPermission = (typeof mcpPermissions)[number]

/** Returns the permission that a tool needs: null if it needs none, undefined if the tool is unknown. */
export function requiredPermission(tool: string): McpPermission | null | undefined {
  if (mcpChatTools.includes(tool)) return 'chat'
  if (!Object.hasOwn(mcpToolAccess, tool)) return undefined
  const rule = mcpToolAccess[tool as keyof typeof mcpToolAccess]
  return rule.kind === 'needs' ? (rule.scope as McpPermission) : null
}
