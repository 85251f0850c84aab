import type { z } from 'zod'
import { WbError } from '../../contract/errors.ts'
import { hashTool } from '../../workspaces/mcp-offer.ts'
import { type RuntimeTool, toAvailableTool } from './own-tools.ts'
import type { Tool, ToolContext, ToolResult } from './tool.ts'
import { failureResult, successResult, ToolError } from './tool-result.ts'

/**
 * Creates a callable tool of the runtime.
 *
 * @param run  returns the text of the result; the message of a `ToolError` or a `WbError` is sent to the
 * model
 */
export function createExecutableTool<Input extends z.ZodType>(
  own: RuntimeTool<Input>,
  run: (args: z.output<Input>, context: ToolContext) => Promise<string>,
  { readsUntrusted = false } = {},
): Tool {
  const tool = toAvailableTool(own)
  return {
    ...tool,
    isExternal: false,
    readsUntrusted,
    hash: hashTool({ ...tool, name: tool.id }),
    async call(args, context) {
      const parsed = own.input.safeParse(args)
      if (!parsed.success) return failureResult(issueIn(parsed.error))
      try {
        return successResult(await run(parsed.data, context))
      } catch (error) {
        return toRefusedResult(error)
      }
    },
  }
}

/** @throws any error other than a `ToolError` or a `WbError` */
function toRefusedResult(error: unknown): ToolResult {
  if (!(error instanceof ToolError) && !(error instanceof WbError)) throw error
  return failureResult(error.message)
}

function issueIn({ issues }: z.ZodError): string {
  const { path, message } = issues[0]!
  const place = path.length === 0 ? 'the arguments' : path.join('.')
  return `${place}: ${message}`
}
