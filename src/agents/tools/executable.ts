import type { z } from 'zod'
import { WbError } from '../../contract/errors.ts'
import { hashOf } from '../../workspaces/mcp-offer.ts'
import { listed, type OwnTool } from './own-tools.ts'
import { failure, success, ToolError } from './result.ts'
import type { Tool, ToolContext, ToolResult } from './tool.ts'

/**
 * Creates a callable tool of the runtime.
 *
 * @param run  returns the text of the result; the message of a `ToolError` or a `WbError` is sent to the
 * model
 */
export function executable<Input extends z.ZodType>(
  own: OwnTool<Input>,
  run: (args: z.output<Input>, context: ToolContext) => Promise<string>,
  { readsUntrusted = false } = {},
): Tool {
  const tool = listed(own)
  return {
    ...tool,
    isExternal: false,
    readsUntrusted,
    hash: hashOf({ ...tool, name: tool.id }),
    async call(args, context) {
      const parsed = own.input.safeParse(args)
      if (!parsed.success) return failure(issueIn(parsed.error))
      try {
        return success(await run(parsed.data, context))
      } catch (error) {
        return refused(error)
      }
    },
  }
}

/** @throws any error other than a `ToolError` or a `WbError` */
function refused(error: unknown): ToolResult {
  if (!(error instanceof ToolError) && !(error instanceof WbError)) throw error
  return failure(error.message)
}

function issueIn({ issues }: z.ZodError): string {
  const { path, message } = issues[0]!
  const place = path.length === 0 ? 'the arguments' : path.join('.')
  return `${place}: ${message}`
}
