import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { resolveTypedPath } from '../resolve-typed-path.ts'
import { archiveBytesMax, unpackArchive } from '../web-sources/archive.ts'
import { type FetchContext, fetchPage } from '../web-sources/fetch-page.ts'
import { cloneRepository } from '../web-sources/repository.ts'
import type { SourceArgument } from '../web-sources/source-argument.ts'
import { SourceProblem } from '../web-sources/source-problem.ts'
import type { Problem } from './ingest-item.ts'
import type { FetchedFolder } from './walk.ts'

const downloadTimeoutMs = 600_000

/** A repository or an archive. */
export type FolderSource = Exclude<SourceArgument, { kind: 'page' }> & {
  /** Argument that the user typed. */
  readonly argument: string
}

interface FetchFoldersOptions extends FetchContext {
  readonly allowsPrivate: boolean
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Folders with the files of repositories and archives, until they are removed. */
export class FetchedFolders {
  readonly folders: FetchedFolder[] = []
  readonly problems: Problem[] = []
  #scratch: string | undefined

  /** Fetches sources one after another. A source that cannot be read is added to `problems`. */
  async fetch(sources: readonly FolderSource[], options: FetchFoldersOptions): Promise<void> {
    for (const [index, source] of sources.entries()) {
      this.#scratch ??= await mkdtemp(join(tmpdir(), 'wb-ingest-'))
      try {
        const folder = await fetchFolder(source, join(this.#scratch, String(index)), options)
        this.folders.push({ folder, shownAs: source.argument, label: labelOf(source.argument) })
      } catch (error) {
        if (!(error instanceof SourceProblem)) throw error
        const path = source.argument.replace(/\/\/[^/]*@/, '//')
        this.problems.push({ path, code: error.code, message: error.message })
      }
    }
  }

  /** Deletes the folders. */
  async remove(): Promise<void> {
    if (this.#scratch !== undefined) await rm(this.#scratch, { recursive: true, force: true })
  }
}

/** Returns the folder with the files of a source. It is the path, or a folder below it. */
async function fetchFolder(
  source: FolderSource,
  path: string,
  options: FetchFoldersOptions,
): Promise<string> {
  if (source.kind === 'repository') {
    await cloneRepository(source.url, source.ref, path, options)
    return path
  }
  const { location } = source
  if (typeof location === 'string')
    return unpackArchive(resolveTypedPath(options.cwd, location), path, options)
  const download = `${path}.tar`
  await fetchPage(options, location, {
    bytesMax: archiveBytesMax,
    timeoutMs: downloadTimeoutMs,
    saveTo: download,
  })
  return unpackArchive(download, path, options)
}

/** Returns the last part of an address, without the extension. */
function labelOf(argument: string): string {
  const path = argument.replace(/[?#].*$/, '').replace(/\/+$/, '')
  return path
    .slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf(':')) + 1)
    .replace(/\.(?:git|tar|tgz|tar\.gz)$/, '')
}
