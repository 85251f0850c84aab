import type { Client } from '../../client/client.ts'
import { type Document, documents } from '../../contract/documents.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import type { LocatedJudgment } from '../../evaluation/grade-hits.ts'
import type { Judgment } from '../../evaluation/question.ts'

/** Finds documents of a knowledge base by the names in judgments. Contains only documents that the caller may see. */
export class JudgedDocuments {
  readonly #byName = new Map<string, Set<string>>()
  readonly #byPathEnd = new Map<string, Set<string>>()

  static async load(
    client: Client,
    { workspaceId, knowledgeBaseId }: Pick<KnowledgeBase, 'workspaceId' | 'knowledgeBaseId'>,
  ): Promise<JudgedDocuments> {
    const judged = new JudgedDocuments()
    const params = { workspaceId, knowledgeBaseId }
    for await (const document of client.items(documents.list, { params })) judged.#add(document)
    return judged
  }

  #add({ documentId, sourceDocId, sourceFilename }: Document): void {
    for (const name of [documentId, sourceDocId, sourceFilename])
      if (name) add(this.#byName, name, documentId)
    for (const end of pathEnds(sourceFilename ?? '')) add(this.#byPathEnd, end, documentId)
  }

  /**
   * Looks up the documents of a judgment by ID, source ID or file name. Otherwise, one of the two paths can be
   * longer, because file names are relative to the ingested folder.
   */
  locate(judgment: Judgment): LocatedJudgment {
    const name = judgment.document
    const documentIds =
      this.#byName.get(name) ??
      this.#byPathEnd.get(name) ??
      pathEnds(name).flatMap(end => this.#byName.get(end) ?? [])[0]
    return { ...judgment, documentIds: documentIds ?? new Set() }
  }
}

/** Returns the ends of a path, longest first, without the path itself. */
function pathEnds(path: string): string[] {
  const parts = path.split('/')
  return parts.slice(1).map((_, index) => parts.slice(index + 1).join('/'))
}

function add(ids: Map<string, Set<string>>, name: string, id: string): void {
  ids.set(name, (ids.get(name) ?? new Set()).add(id))
}
