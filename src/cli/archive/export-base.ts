import { existsSync, readFileSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs'
import { appendFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { parseJson } from '../../base/parse-json.ts'
import { writePrivateFile } from '../../base/private-file.ts'
import type { Client } from '../../client/client.ts'
import { WbError } from '../../contract/errors.ts'
import { type KnowledgeBase, kb } from '../../contract/knowledge.ts'
import { type ArchiveSummary, verifyArchive } from './archive-file.ts'

const compress = promisify(gzip)
/** Maximum number of times that an export goes back because a document or the embedding service changed. */
const attemptsMax = 10

interface ExportOptions {
  readonly client: Client
  readonly base: KnowledgeBase
  /** Absolute path of the file. */
  readonly path: string
  /** True to include what the caller may not see. */
  readonly all: boolean
  readonly signal: AbortSignal
  onProgress(bytes: number): void
}

/** A place at which an export can continue: the next page, and the length of the file up to it. */
interface ExportPlace {
  readonly cursor: string
  readonly bytes: number
}

/** How far an export has come. */
interface ExportState {
  readonly knowledgeBaseId: string
  readonly all: boolean
  readonly next: ExportPlace
  /** The place after the last whole document, to which the export goes back if the next one has changed. */
  readonly whole?: ExportPlace | undefined
}

/** The file of an unfinished export, and its state. */
function partialPaths(path: string): { partial: string; stateFile: string } {
  return { partial: `${path}.partial`, stateFile: `${path}.partial.json` }
}

/**
 * Exports a knowledge base to a file that only this user can read. Continues an export that was interrupted. The file gets
 * its final name after it is verified.
 *
 * @throws conflict  a document keeps changing
 */
export async function exportBase(options: ExportOptions): Promise<ArchiveSummary & { isResumed: boolean }> {
  const { path, signal } = options
  const { partial, stateFile } = partialPaths(path)
  const start = readState(stateFile, partial, options)
  await downloadPages(options, start)
  const summary = await verifyArchive(partial, signal).catch(error => {
    // A power failure may have lost a part of the file.
    rmSync(stateFile, { force: true })
    throw error
  })
  renameSync(partial, path)
  rmSync(stateFile, { force: true })
  return { ...summary, isResumed: start !== undefined }
}

async function downloadPages(options: ExportOptions, start: ExportState | undefined): Promise<void> {
  const { client, base, path, all, signal, onProgress } = options
  const { workspaceId, knowledgeBaseId } = base
  const { partial, stateFile } = partialPaths(path)
  let whole = start?.whole
  let cursor = rewindTo(start?.next, partial)
  for (let attempt = 0; ; ) {
    const query = { ...(cursor !== undefined && { cursor }), ...(all && { all: 'true' as const }) }
    try {
      const page = await client.call(
        kb.export,
        { params: { workspaceId, knowledgeBaseId }, query },
        { signal },
      )
      // Each page is a gzip member, so the file can be cut after each.
      await appendFile(partial, await compress(`${page.lines.join('\n')}\n`), { mode: 0o600 })
      if (page.nextCursor === null) return
      cursor = page.nextCursor
      const next = { cursor, bytes: statSync(partial).size }
      onProgress(next.bytes)
      if (page.isComplete) whole = next
      const state: ExportState = { knowledgeBaseId, all, next, whole }
      writePrivateFile(stateFile, JSON.stringify(state))
    } catch (error) {
      const code = error instanceof WbError && cursor !== undefined ? error.code : undefined
      const isStale = code === 'conflict' || code === 'invalid_cursor'
      if (!isStale || ++attempt === attemptsMax) throw error
      // The pages before have the vectors of another embedding service.
      if (code === 'invalid_cursor') whole = undefined
      cursor = rewindTo(whole, partial)
    }
  }
}

/** Truncates the file at a place, or deletes it if there is no place. Returns the cursor of the next page. */
function rewindTo(place: ExportPlace | undefined, partial: string): string | undefined {
  if (place) truncateSync(partial, place.bytes)
  else rmSync(partial, { force: true })
  return place?.cursor
}

function readState(
  stateFile: string,
  partial: string,
  { base, all }: Pick<ExportOptions, 'base' | 'all'>,
): ExportState | undefined {
  if (!existsSync(stateFile) || !existsSync(partial)) return undefined
  const state = parseJson(readFileSync(stateFile, 'utf8')) as ExportState | undefined
  const isSame = state?.knowledgeBaseId === base.knowledgeBaseId && state.all === all
  return isSame && statSync(partial).size >= state.next.bytes ? state : undefined
}
