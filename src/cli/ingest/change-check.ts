import { documents } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import type { ChangeCheck, IngestTarget } from './ingest-batch.ts'
import { type IngestSource, nameOf } from './ingest-item.ts'

/** Returns a check that asks the runtime which files it has. With an older runtime, all files count as changed. */
export function createChangeCheck({ client, base, signal }: IngestTarget): ChangeCheck {
  const { workspaceId, knowledgeBaseId } = base
  let isSupported = true
  return async batch => {
    const hashed = batch.flatMap(source =>
      source.hash === undefined ? [] : [{ source, sourceFilename: nameOf(source), fileHash: source.hash }],
    )
    if (!isSupported || hashed.length === 0) return new Set(batch)
    const body = { files: hashed.map(({ sourceFilename, fileHash }) => ({ sourceFilename, fileHash })) }
    try {
      const { states } = await client.call(
        documents.checkFiles,
        { params: { workspaceId, knowledgeBaseId }, body },
        { signal },
      )
      const unchanged = new Set<IngestSource>(
        hashed.filter((_, at) => states[at] === 'unchanged').map(({ source }) => source),
      )
      return new Set(batch.filter(source => !unchanged.has(source)))
    } catch (error) {
      if (!(error instanceof WbError) || error.code !== 'not_found') throw error
      isSupported = false
      return new Set(batch)
    }
  }
}
