import type { Client } from '../../client/client.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { isAnswer, type LocatedJudgment } from '../../evaluation/grade-hits.ts'
import { readDocumentChunks } from '../documents/chunks.ts'

/** Maximum number of documents that are read. */
const documentsMax = 200

/**
 * Returns the judgments whose heading or text no passage of their documents contains, for example because it is misspelled. Reads
 * only the first {@link documentsMax} documents.
 */
export async function findUnmatchedAnswers(
  { client, base, signal }: { client: Client; base: KnowledgeBase; signal: AbortSignal },
  judgments: readonly LocatedJudgment[],
): Promise<LocatedJudgment[]> {
  const { workspaceId, knowledgeBaseId } = base
  const specific = judgments.filter(({ heading, text }) => heading !== undefined || text !== undefined)
  const documentIds = [...new Set(specific.flatMap(judgment => [...judgment.documentIds]))]
  const read = new Set(documentIds.slice(0, documentsMax))
  const matched = new Set<LocatedJudgment>()
  for (const documentId of read) {
    signal.throwIfAborted()
    for await (const { id, text } of readDocumentChunks(client, { workspaceId, knowledgeBaseId, documentId }))
      for (const judgment of specific)
        if (isAnswer({ id, documentId, text: text ?? '' }, judgment)) matched.add(judgment)
  }
  const isRead = ({ documentIds }: LocatedJudgment) =>
    documentIds.size > 0 && [...documentIds].every(id => read.has(id))
  return specific.filter(judgment => isRead(judgment) && !matched.has(judgment))
}
