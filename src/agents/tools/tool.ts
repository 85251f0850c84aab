import type { Caller } from '../../access/caller.ts'
import type { AvailableTool } from '../../contract/agents.ts'
import type { ToolOutcome } from '../../contract/chat.ts'

/** A passage that a tool found, for citations. */
export interface ToolPassage {
  /** Null for a passage of an attachment. */
  readonly knowledgeBaseId: string | null
  /** Null for a passage of a knowledge base. */
  readonly attachmentId: string | null
  readonly documentId: string | null
  readonly chunkId: string
  readonly chunkIndex: number | null
  readonly title: string | null
  readonly sourceFilename: string | null
  /** Page in the source, from 1; null if unknown. */
  readonly page: number | null
}

/** Caller and limits of a tool call. */
export interface ToolContext {
  readonly workspaceId: string
  /** Caller of the turn. Tools read only content that it may see. */
  readonly caller: Pick<Caller, 'auth' | 'client' | 'reauthorize' | 'rowAccess' | 'signal' | 'requestId'>
  /** Knowledge bases of the conversation, or those of the agent if the conversation has none. Empty means all. */
  readonly knowledgeBaseIds: readonly string[]
  /** Maximum total number of tokens of the passages that one call returns. */
  readonly passageTokens: number
  /** Fires when the result is no longer needed. */
  readonly signal: AbortSignal
  /**
   * Returns the number that cites a passage, from 1. A passage keeps its number throughout the turn.
   *
   * @param text  text of the passage in the result
   */
  cite(passage: ToolPassage, text: string): number
  /** Records that the result contains fields of a document. Not needed for documents whose passages are cited. */
  addSource(document: { readonly knowledgeBaseId: string; readonly documentId: string }): void
}

/** Result of a tool call. */
export interface ToolResult {
  /** Text for the model. */
  readonly content: string
  readonly outcome: ToolOutcome
  /** Reason for a failure or denial, for the audit trail. */
  readonly reason?: string
}

/** A tool that an agent can call. */
export interface Tool extends AvailableTool {
  /** True for a tool of an MCP server. Its calls require the scope `tools:invoke`. */
  readonly isExternal: boolean
  /** True if the results can contain text of documents, web pages or other programs. */
  readonly readsUntrusted: boolean
  /** Hash of the name, the description and the schema. */
  readonly hash: string
  /**
   * Calls the tool. If the model made a mistake, does not throw, but returns a `failure` whose content starts with
   * `Error:`.
   */
  call(args: Readonly<Record<string, unknown>>, context: ToolContext): Promise<ToolResult>
}
