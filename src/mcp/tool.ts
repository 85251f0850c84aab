import { z } from 'zod'
import type { Caller } from '../access/caller.ts'
import type { WorkspaceAccess } from '../contract/access.ts'
import type { ErrorCode } from '../contract/errors.ts'
import { mcpToolAccess } from '../contract/tool-access.ts'
import type { RouteCaller } from './route-caller.ts'

export type McpToolName = keyof typeof mcpToolAccess

/** Context in which an operation runs. */
export interface FacadeCall {
  readonly workspaceId: string
  readonly caller: Caller
  /** Calls REST routes of the workspace on behalf of the caller. */
  readonly routeCaller: RouteCaller
}

/** Result of an operation. */
export interface FacadeResult {
  /** Content for the client. A string is sent as is, and any other value as JSON. */
  readonly payload: unknown
  /** True if the operation failed. */
  readonly isError?: boolean
  /** Cursor of the next page of a list; null or absent on the last page. */
  readonly nextCursor?: string | null
  /** Error code of an operation that was denied or failed. The only part of a failed result that is recorded. */
  readonly code?: ErrorCode | undefined
}

/** An operation that MCP clients can call, with its access rule and the schema of its arguments. */
export interface FacadeOperation<S extends z.ZodType = z.ZodType> {
  /** Name in the audit trail and in the list of the latest calls. */
  readonly name: string
  readonly access: WorkspaceAccess
  readonly input: S
  /**
   * Runs the operation. Reports a failure as a result, or throws a `WbError` whose message is shown to the
   * caller.
   */
  run(input: z.output<S>, call: FacadeCall): Promise<FacadeResult>
}

/** Declares an operation whose input has the types of its schema. */
export function declareOperation<S extends z.ZodType>(declared: FacadeOperation<S>): FacadeOperation {
  return declared as unknown as FacadeOperation
}

/** A tool that this runtime offers to MCP clients. */
export interface FacadeTool<S extends z.ZodObject = z.ZodObject> extends FacadeOperation<S> {
  readonly name: McpToolName
  /** Display name. */
  readonly title: string
  /** Description for a model, with an example of the arguments. */
  readonly description: string
}

interface ToolDeclaration<S extends z.ZodRawShape> extends Pick<FacadeTool, 'name' | 'title'> {
  /** Text for the model about when to call the tool, and what it returns. */
  readonly description: string
  /** Arguments by name, each declared with {@link declareArgument}. */
  readonly input: S
  /** Arguments of a typical call. */
  readonly example: object
  run(input: z.output<z.ZodObject<S>>, call: FacadeCall): Promise<FacadeResult>
}

/**
 * Declares a tool whose arguments have the types of its schema. A call with unknown arguments is rejected, and the
 * error names them.
 */
export function declareTool<const S extends z.ZodRawShape>(declared: ToolDeclaration<S>): FacadeTool {
  const { name, title, description, example, run } = declared
  const names = Object.keys(declared.input)
  const input = z.strictObject(declared.input, { error: issue => unknownArguments(issue, names) })
  return {
    name,
    title,
    description: `${description} Example: ${JSON.stringify(example)}`,
    access: mcpToolAccess[name],
    input,
    run,
  } as unknown as FacadeTool
}

/**
 * Declares an argument of a tool.
 *
 * @param example  a value that the schema accepts
 */
export function declareArgument<S extends z.ZodType>(schema: S, description: string, example: z.input<S>): S {
  return schema.meta({ description: `${description} Example: ${JSON.stringify(example)}` })
}

const namesShown = 5
const nameCharsShown = 100

function unknownArguments(issue: z.core.$ZodRawIssue, argumentNames: readonly string[]): string | undefined {
  if (issue.code !== 'unrecognized_keys') return undefined
  const unknownNames = issue.keys
    .slice(0, namesShown)
    .map(key => JSON.stringify(key.slice(0, nameCharsShown)))
  const expected =
    argumentNames.length === 0 ? 'this tool takes none' : `this tool takes ${argumentNames.join(', ')}`
  return `unknown argument ${unknownNames.join(', ')}; ${expected}`
}
