import type { Client } from '../../client/client.ts'
import { WbError } from '../../contract/errors.ts'
import { type KnowledgeBase, kb } from '../../contract/knowledge.ts'
import { readArchiveLines, verifyArchive } from './archive-file.ts'

/** Length of the lines of a request, in characters, that ends it. */
const requestChars = 1_000_000
const requestLinesMax = 5_000

interface ImportOptions {
  readonly client: Client
  readonly workspaceId: string
  /** Absolute path of the file. */
  readonly path: string
  readonly name: string | undefined
  readonly embeddingServiceId: string | undefined
  readonly signal: AbortSignal
  onProgress(done: number, total: number): void
}

/** An imported knowledge base. */
export interface ImportedBase {
  readonly base: KnowledgeBase
  readonly documents: number
  readonly chunks: number
  /** True if an earlier, interrupted import was continued. */
  readonly isResumed: boolean
}

/**
 * Checks a whole file, then imports it. Continues an import that was interrupted.
 *
 * @throws archive_damaged, archive_not_supported  nothing was changed
 * @throws kb_name_taken  suggests `--name`
 * @throws the errors of the routes
 */
export async function importBase(options: ImportOptions): Promise<ImportedBase> {
  const { client, workspaceId, path, name, embeddingServiceId, signal, onProgress } = options
  const { header, lines: total, documents, records } = await verifyArchive(path, signal)
  const body = { header, name, embeddingServiceId }
  const started = await client
    .call(kb.beginImport, { params: { workspaceId }, body }, { signal })
    .catch(error => {
      if (!(error instanceof WbError) || error.code !== 'kb_name_taken') throw error
      throw new WbError(error.code, error.message, {
        ...error.facts,
        next: ['add --name to import it under another name'],
      })
    })
  const { knowledgeBase: base, nextLine } = started
  const params = { workspaceId, knowledgeBaseId: base.knowledgeBaseId }
  let part: string[] = []
  let [from, at, chars] = [nextLine, 0, 0]
  const send = async () => {
    await client.call(kb.importLines, { params, body: { from, lines: part } }, { signal })
    from += part.length
    part = []
    chars = 0
    onProgress(from, total)
  }
  for await (const line of readArchiveLines(path)) {
    if (at++ < nextLine) continue
    if (part.length > 0 && chars + line.length > requestChars) await send()
    part.push(line)
    chars += line.length
    if (part.length === requestLinesMax) await send()
  }
  if (part.length > 0) await send()
  return { base, documents, chunks: records, isResumed: nextLine > 1 }
}
