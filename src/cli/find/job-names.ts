import pMap from 'p-map'
import type { Client } from '../../client/client.ts'
import { documents } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import type { Job } from '../../contract/jobs.ts'
import { lookUpName } from '../fields/tool-name.ts'
import { lookUpBaseNames } from './names.ts'

/** Maximum number of documents to look up, with one call each. */
const documentsMax = 200
const concurrentCallsMax = 8

/** Names of the document and knowledge base of a job. */
export interface JobNames {
  /** File name of the document, or else its source ID, or else its ID. Null if the job has no document. */
  readonly document: string | null
  /** Name of the knowledge base, or else its ID. Null if the job has none. */
  readonly base: string | null
}

/**
 * Looks up the names of the documents and knowledge bases of jobs in one workspace. Only the first
 * {@link documentsMax} documents are looked up; for the others, the ID is returned.
 */
export async function lookUpJobNames(
  client: Client,
  jobs: readonly Job[],
): Promise<{ get(job: Job): JobNames }> {
  const baseIds = jobs.flatMap(({ knowledgeBaseId }) => knowledgeBaseId ?? [])
  const bases = await lookUpBaseNames(client, jobs[0]?.workspaceId ?? '', baseIds)
  const documents = await lookUpDocumentNames(client, jobs)
  return {
    get: ({ documentId, knowledgeBaseId }) => ({
      document: documentId && (documents.get(documentId) ?? documentId),
      base: knowledgeBaseId && (lookUpName(bases, knowledgeBaseId) ?? knowledgeBaseId),
    }),
  }
}

async function lookUpDocumentNames(client: Client, jobs: readonly Job[]): Promise<Map<string, string>> {
  const names = new Map<string, string>()
  const jobByDocument = new Map(jobs.flatMap(job => (job.documentId ? [[job.documentId, job] as const] : [])))
  await pMap(
    [...jobByDocument].slice(0, documentsMax),
    async ([documentId, job]) => {
      const name = await lookUpFileName(client, job)
      if (name) names.set(documentId, name)
    },
    { concurrency: concurrentCallsMax },
  )
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
