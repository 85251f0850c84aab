import type { z } from 'zod'
import type { Caller } from '../access/caller.ts'
import type { mcpToolAccess } from '../contract/tool-access.ts'
import type { Rest } from './rest.ts'

export type ToolName = keyof typeof mcpToolAccess

/** On whose behalf and where a tool is called. */
export interface FacadeCall {
  readonly workspaceId: string
  readonly caller: Caller
  readonly rest: Rest
}

/** What a tool has to say. */
export interface FacadeResult {
  /** A text goes out as it is, anything else as JSON. */
  readonly payload: unknown
  /** Left out, it is a success. */
  readonly isError?: boolean
}

/** A tool of the runtime's own for other programs' agents. */
export interface FacadeTool<S extends z.ZodObject = z.ZodObject> {
  readonly name: ToolName
  /** Display name. */
  readonly title: string
  readonly description: string
  readonly input: S
  /** What it cannot do is an outcome, or thrown as a `WbError` whose message is told. */
  run(input: z.output<S>, call: FacadeCall): Promise<FacadeResult>
}

/** A tool whose arguments have the types of its schema. */
export function tool<S extends z.ZodObject>(declared: FacadeTool<S>): FacadeTool {
  return declared as unknown as FacadeTool
}
