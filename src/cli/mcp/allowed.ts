import { mcpChatTools, mcpToolAccess } from '../../contract/tool-access.ts'

/** What `--allow` adds to the tools that read. */
export const allowances = ['write:ingest', 'write:kb', 'chat'] as const
export type Allowance = (typeof allowances)[number]

/** What must be allowed for a tool: null is nothing; undefined is a tool that nobody here knows. */
export function allowanceFor(tool: string): Allowance | null | undefined {
  if (mcpChatTools.includes(tool)) return 'chat'
  if (!Object.hasOwn(mcpToolAccess, tool)) return undefined
  const rule = mcpToolAccess[tool as keyof typeof mcpToolAccess]
  return rule.kind === 'needs' ? (rule.scope as Allowance) : null
}
