import type { Caller } from '../../access/caller.ts'
import type { AvailableTool } from '../../contract/agents.ts'
import type { ToolOutcome } from '../../contract/chat.ts'

/** A passage that a tool found, for citations. */
export interface Passage {
  /** Null for a passage of an attachment. */
  readonly knowledgeBaseId: string | null
  /** Null for a passage of a knowledge base. */
  readonly attachmentId: string | null
  readonly documentId: string | null
  readonly chunkId: string
  readonly chunkIndex: number | null
  readonly title: string | null
  readonly sourceFilename: string | null
  /** Of the source, from 1; null where it has none. */
  readonly page: number | null
}

/** On whose behalf and in whose bounds a tool is called. */
export interface ToolContext {
  readonly workspaceId: string
  /** Reads of content go through its visibility. */
  readonly caller: Pick<Caller, 'auth' | 'visibility' | 'signal' | 'requestId'>
  /** Knowledge bases that the conversation is bound to, else the agent; empty is all of the workspace. */
  readonly knowledgeBaseIds: readonly string[]
  /** Maximum tokens of all passages of one call together. */
  readonly passageTokens: number
  /** Fires when nobody waits any longer. */
  readonly signal: AbortSignal
  /**
   * The number by which an answer cites a passage: the same passage has the same number throughout a conversation's
   * turn. @returns from 1
   */
  cite(passage: Passage): number
}

/** What a call of a tool came to. */
export interface ToolResult {
  /** For the model. */
  readonly content: string
  readonly outcome: ToolOutcome
  /** Why it is no success, for the audit trail. */
  readonly reason?: string
}

/** A tool that an agent can call. */
export interface Tool extends AvailableTool {
  /** Of the registered server that offers it: only callers with `tools:invoke` use it, and it is audited. */
  readonly isExternal: boolean
  /** Its results hold text of documents, pages or other programs. */
  readonly readsUntrusted: boolean
  /** Changes when its description or schema does. */
  readonly hash: string
  /** Never throws for what the model got wrong: that is a `failure` whose content begins with `Error:`. */
  call(args: Readonly<Record<string, unknown>>, context: ToolContext): Promise<ToolResult>
}
