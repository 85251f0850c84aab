import { WbError } from '../../contract/errors.ts'
import { normalizeFolderPath } from '../../contract/folder-description.ts'
import { folders } from '../../contract/folders.ts'
import type { Job } from '../../contract/jobs.ts'
import { kb } from '../../contract/knowledge.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { type ReindexContext, reportKept, reportStarted, startReindex, watchReindex } from './run-reindex.ts'

interface DescribeOptions {
  readonly path: string
  /** Null to remove the description. */
  readonly description: string | null
  /** Time at which the documents that were ingested before are embedded again. */
  readonly reindex: 'now' | 'in background' | 'later'
}

/** Sets or removes the description of a folder, and reindexes its knowledge base. */
export async function describeFolder(
  context: ReindexContext,
  { path, description, reindex }: DescribeOptions,
): Promise<void> {
  const { client, output, base } = context
  const params = { workspaceId: base.workspaceId, knowledgeBaseId: base.knowledgeBaseId }
  const described = await client.call(folders.update, { params, body: { path, description } })
  const target = normalizeFolderPath(path) === '' ? 'all files' : plainLine(path)
  const line = `${description === null ? 'removed the description of' : 'described'} ${target} in ${base.name}`
  if (reindex === 'later') {
    output.reportSaved(described, base.knowledgeBaseId, line)
    output.suggest(`wb kb reindex ${base.name}`)
    return
  }
  const job = await startOrFindReindex(context)
  if (reindex === 'in background') {
    reportStarted(context, job, { ...described, job })
    return
  }
  const { documents } = await watchReindex(context, job)
  output.reportSaved({ ...described, documents }, base.knowledgeBaseId, line)
  if (output.json) return
  output.note(`  documents embedded again: ${documents.rechunked}`)
  reportKept(context, documents.kept)
}

/** Returns a job that uses the current descriptions: the one that is reindexing the knowledge base, or a new one. */
async function startOrFindReindex(context: ReindexContext): Promise<Job> {
  try {
    return await startReindex(context, {})
  } catch (error) {
    if (!(error instanceof WbError) || error.code !== 'conflict') throw error
    const { workspaceId, knowledgeBaseId } = context.base
    const { job } = await context.client.call(kb.reindexing, { params: { workspaceId, knowledgeBaseId } })
    const isRunning = job?.status === 'pending' || job?.status === 'running'
    return isRunning ? job : startReindex(context, {})
  }
}
