import type { Client } from '../../client/client.ts'
import { documents } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import type { Job } from '../../contract/jobs.ts'
import { kb } from '../../contract/knowledge.ts'

/** Maximum number of documents to look up, with one call each. */
const documentsMax = 50

/** Names of the document and knowledge base of a job. */
export interface JobNames {
  /** File name, else source ID, else ID of the document. */
  readonly document: string | null
  /** Name of the knowledge base, else its ID. */
  readonly base: string | null
}

/**
 * Looks up the document and knowledge base names of jobs in one workspace. Only the first
 * {@link documentsMax} documents are looked up.
 */
export async function lookUpJobNames(
  client: Client,
  all: readonly Job[],
): Promise<{ of(job: Job): JobNames }> {
  const first = all[0]
  if (!first) return { of: namesOf(new Map(), new Map()) }
  return { of: namesOf(await lookUpBaseNamesOfJob(client, first), await lookUpDocumentNames(client, all)) }
}

function namesOf(bases: ReadonlyMap<string, string>, files: ReadonlyMap<string, string>) {
  return ({ documentId, knowledgeBaseId }: Job): JobNames => ({
    document: documentId && (files.get(documentId) ?? documentId),
    base: knowledgeBaseId && (bases.get(knowledgeBaseId) ?? knowledgeBaseId),
  })
}

async function lookUpBaseNamesOfJob(client: Client, { workspaceId }: Job): Promise<Map<string, string>> {
  const request = { params: { workspaceId } }
  const { items } = await client.call(kb.list, request)
  return new Map(items.map(({ knowledgeBaseId, name }) => [knowledgeBaseId, name]))
}

async function lookUpDocumentNames(client: Client, all: readonly Job[]): Promise<Map<string, string>> {
  const names = new Map<string, string>()
  const wanted = new Map(all.flatMap(job => (job.documentId ? [[job.documentId, job] as const] : [])))
  for (const [documentId, job] of [...wanted].slice(0, documentsMax)) {
    const name = await lookUpFileName(client, job)
    if (name) names.set(documentId, name)
  }
  return names
}

/** Returns undefined if the document was deleted. */
async function lookUpFileName(
  client: Client,
  { workspaceId, knowledgeBaseId, documentId }: Job,
): Promise<string | undefined> {
  if (knowledgeBaseId === null || documentId === null) return undefined
  try {
    const row = await client.call(documents.show, { params: { workspaceId, knowledgeBaseId, documentId } })
    return row.sourceFilename ?? row.sourceDocId ?? undefined
  } catch (error) {
    if (error instanceof WbError && error.status === 404) return undefined
    throw error
  }
}
