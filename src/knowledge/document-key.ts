/** The IDs of a knowledge base. */
export interface BaseKey {
  readonly workspaceId: string
  readonly knowledgeBaseId: string
}

/** The IDs of a document. */
export interface DocumentKey extends BaseKey {
  readonly documentId: string
}

/** Returns the IDs of a knowledge base as one text. Its own ID is unique only in its workspace. */
export function baseKeyText({ workspaceId, knowledgeBaseId }: BaseKey): string {
  return JSON.stringify([workspaceId, knowledgeBaseId])
}

/** Returns the primary key of a document. */
export function keyOf({ workspaceId, knowledgeBaseId, documentId }: DocumentKey): string[] {
  return [workspaceId, knowledgeBaseId, documentId]
}
