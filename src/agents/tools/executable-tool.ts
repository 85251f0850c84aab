import type { z } from 'zod'
import { WbError } from '../../contract/errors.ts'
import { hashTool } from '../../workspaces/mcp-offer.ts'
import { type RuntimeTool, toAvailableTool } from './runtime-tools.ts'
import type { Tool, ToolContext, ToolResult } from './tool.ts'
import { failureResult, successResult, ToolError } from './tool-result.ts'

/**
 * Creates an agent tool from the definition of a runtime tool.
 *
 * @param run  returns the result text; if it throws a `ToolError` or a `WbError`, the model receives the message
 */
export function createExecutableTool<Input extends z.ZodType>(
  definition: RuntimeTool<Input>,
  run: (args: z.output<Input>, context: ToolContext) => Promise<string>,
  { readsUntrusted = false } = {},
): Tool {
  const tool = toAvailableTool(definition)
  return {
    ...tool,
    isExternal: false,
    readsUntrusted,
    hash: hashTool({ ...tool, name: tool.id }),
    async call(args, context) {
      const parsed = definition.input.safeParse(args)
      if (!parsed.success) return failureResult(describeIssue(parsed.error))
      try {
        return successResult(await run(parsed.data, context))
      } catch (error) {
        return toFailureResult(error)
      }
    },
  }
}

/** @throws any error other than a `ToolError` or a `WbError` */
function toFailureResult(error: unknown): ToolResult {
  if (!(error instanceof ToolError) && !(error instanceof WbError)) throw error
  return failureResult(error.message)
}

function describeIssue({ issues }: z.ZodError): string {
  const { path, message } = issues[0]!
  const argument = path.length === 0 ? 'the arguments' : path.join('.')
  return `${argument}: ${message}`
}
