import { mcpChatTools, mcpToolAccess } from '../../contract/tool-access.ts'

/** Permissions that `--allow` can add to the read-only tools. */
export const allowances = ['write:ingest', 'write:kb', 'chat'] as const
export type Allowance = (typeof allowances)[number]

/** Returns the permission that a tool needs: null if none, undefined if the tool is unknown. */
export function requiredAllowance(tool: string): Allowance | null | undefined {
  if (mcpChatTools.includes(tool)) return 'chat'
  if (!Object.hasOwn(mcpToolAccess, tool)) return undefined
  const rule = mcpToolAccess[tool as keyof typeof mcpToolAccess]
  return rule.kind === 'needs' ? (rule.scope as Allowance) : null
}
