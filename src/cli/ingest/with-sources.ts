import type { Clock } from '../../base/clock.ts'
import { openPageNetwork } from '../local.ts'
import { readableStatsOf } from '../readable-stats-of.ts'
import { resolveTypedPath } from '../resolve-typed-path.ts'
import { parseSourceArgument } from '../web-sources/source-argument.ts'
import { FetchedFolders, type FolderSource } from './fetch-folders.ts'
import type { WebSelection } from './ingest.ts'
import type { IngestSelection } from './sources.ts'

interface SourceOptions {
  readonly flags: {
    readonly depth: number
    readonly sitemap: boolean
    readonly 'max-pages': number
    readonly 'allow-private': boolean
  }
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Called with a description before repositories and archives are fetched. */
  readonly onFetch: (label: string) => void
}

/** Files to ingest, without the settings that apply to all of them. */
type LocalSelection = Pick<IngestSelection, 'paths' | 'fetchedFolders' | 'fetchProblems'>

/** Returns true for the URL of a page, a repository or an archive. */
export function isRemote(argument: string): boolean {
  const source = parseSourceArgument(argument)
  return source !== undefined && !(source.kind === 'archive' && typeof source.location === 'string')
}

/**
 * Separates local paths from URLs, fetches repositories and archives, and calls `use`. Deletes the fetched files
 * afterwards.
 */
export async function withSources<T>(
  args: readonly string[],
  { flags, onFetch, ...context }: SourceOptions,
  use: (local: LocalSelection, web: WebSelection | undefined) => Promise<T>,
): Promise<T> {
  const { paths, urls, folders } = classify(args, context.cwd)
  if (urls.length === 0 && folders.length === 0) return use({ paths }, undefined)
  const allowsPrivate = flags['allow-private']
  const network = await openPageNetwork({ allowsPrivate })
  const fetched = new FetchedFolders()
  try {
    if (folders.length > 0) onFetch(folders.map(({ argument }) => argument).join(', '))
    await fetched.fetch(folders, { ...context, network, allowsPrivate })
    const pages = { urls, depth: flags.depth, usesSitemap: flags.sitemap, pagesMax: flags['max-pages'] }
    return await use(
      { paths, fetchedFolders: fetched.folders, fetchProblems: fetched.problems },
      urls.length === 0 ? undefined : { pages, context: { network, clock: context.clock } },
    )
  } finally {
    await fetched.remove()
    await network.close()
  }
}

/** A local path is an archive only if it is a file, so that a missing file is reported, and a folder read, like any other. */
function classify(args: readonly string[], cwd: string) {
  const paths: string[] = []
  const urls: string[] = []
  const folders: FolderSource[] = []
  for (const argument of args) {
    const source = parseSourceArgument(argument)
    const isNoFile =
      source?.kind === 'archive' &&
      typeof source.location === 'string' &&
      !readableStatsOf(resolveTypedPath(cwd, source.location))?.isFile()
    if (source === undefined || isNoFile) paths.push(argument)
    else if (source.kind === 'page') urls.push(source.url)
    else folders.push({ ...source, argument })
  }
  return { paths, urls, folders }
}
