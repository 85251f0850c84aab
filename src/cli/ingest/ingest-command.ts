import { existsSync } from 'node:fs'
import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { isDynamicPattern } from 'tinyglobby'
import { WbError } from '../../contract/errors.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { WbCommand } from '../command/command.ts'
import { exit } from '../command/exit.ts'
import { UsageError } from '../errors.ts'
import { resolveTypedPath } from '../resolve-typed-path.ts'
import { pagesDefault } from '../web-sources/crawl.ts'
import { findOrCreateBase } from './find-or-create-base.ts'
import { ingest } from './ingest.ts'
import { planIngest, printIngestPlan } from './ingest-plan.ts'
import { storeIngestedFolders } from './ingested-folders.ts'
import { type IngestSelection, readSources, selectStdin } from './sources.ts'
import { type IngestSummary, printIngestSummary } from './summary.ts'
import { isRemote, withSources } from './with-sources.ts'

/** First path argument of commands that ingest files. More paths can follow. */
export const pathArg = {
  ...Args.string({
    required: true,
    ignoreStdin: true,
    description: 'files, folders, globs, URLs, Git repositories, archives, or - for stdin',
  }),
  pathQuestion: 'Which file or folder?',
}

/** Flags of commands that ingest files. */
export const ingestFlags = {
  create: Flags.boolean({ summary: 'create the knowledge base if it does not exist' }),
  async: Flags.boolean({ summary: 'ingest in background jobs' }),
  all: Flags.boolean({ summary: 'include hidden files and files that .gitignore and .wbignore exclude' }),
  name: Flags.string({ summary: 'file name for stdin', helpValue: 'FILE' }),
  'dry-run': Flags.boolean({ summary: 'show what would be embedded, without ingesting' }),
  price: Flags.custom<number>({ parse: async text => parsePrice(text) })({
    summary: 'price per million tokens, to estimate the cost',
    helpValue: 'NUMBER',
    dependsOn: ['dry-run'],
  }),
  depth: Flags.integer({
    min: 0,
    max: 10,
    default: 0,
    helpValue: 'N',
    summary: 'how deep to follow links from a web page',
  }),
  sitemap: Flags.boolean({ summary: 'read the web pages that the sitemap of a site lists' }),
  'max-pages': Flags.integer({
    min: 1,
    max: 10_000,
    default: pagesDefault,
    helpValue: 'N',
    summary: 'maximum number of web pages to read',
  }),
  'allow-private': Flags.boolean({ summary: 'allow URLs with private addresses' }),
  verbose: Flags.boolean({ summary: 'list all skipped and failed files' }),
}

/** Values of {@link ingestFlags}. */
interface IngestFlags {
  readonly create: boolean
  readonly async: boolean
  readonly all: boolean
  readonly name?: string
  readonly 'dry-run': boolean
  readonly price?: number
  readonly depth: number
  readonly sitemap: boolean
  readonly 'max-pages': number
  readonly 'allow-private': boolean
  readonly verbose: boolean
}

/** The target knowledge base. If `find` does not find it, it is created with this name. */
interface Destination {
  readonly name: string
  find(name: string): Promise<KnowledgeBase>
}

/** Base class of commands that ingest files into a knowledge base. */
export abstract class IngestCommand extends WbCommand {
  protected override readonly finishesBackgroundWork = true

  /** Summary of the work that was completed before an error. */
  #partialSummary: IngestSummary | undefined
  #isVerbose = false

  /** Reports the error first, because it explains the counts in the summary. Prints no summary if nothing was done. */
  override async catch(error: Error): Promise<void> {
    await super.catch(error)
    if (this.#partialSummary && this.#partialSummary.tally.processedCount > 0)
      printIngestSummary(this.output, this.#partialSummary, this.#isVerbose)
  }

  protected async ingest(destination: Destination, paths: readonly string[], flags: IngestFlags) {
    const { io } = this
    this.#isVerbose = flags.verbose
    const stdin = paths.includes('-') ? selectStdin(flags.name, io.stdin) : undefined
    const { client, signal, progress, output } = this
    if (flags['dry-run'] && paths.some(isRemote)) throw new UsageError('--dry-run reads local files only')
    if (flags['dry-run'])
      return this.plan(destination, { paths, stdin, cwd: io.cwd, all: flags.all }, flags.price)
    const { base, created } = await findOrCreateBase({
      client,
      signal,
      ...destination,
      isWorkspaceNamed: this.profile.workspace !== undefined,
      workspace: () => this.workspaceOrDefault(),
      confirm: async question => {
        const isAllowed = flags.create || (await this.askYesNo(question))
        if (isAllowed) requireAnyPath(paths, io.cwd)
        return isAllowed
      },
    })
    storeIngestedFolders(
      this.profile,
      base,
      paths.filter(path => path !== '-' && !isRemote(path)).map(path => resolveTypedPath(io.cwd, path)),
    )
    if (created) output.note(`  created knowledge base ${base.name}`)
    const jobs = flags.async ? (output.interactive ? 'wait' : 'detach') : undefined
    const { summary, interruption } = await withSources(
      paths,
      { flags, cwd: io.cwd, env: io.env, clock: io.clock, signal, onFetch: label => progress.spin(label) },
      (local, web) =>
        ingest(
          { client, signal, progress, base, jobs },
          { ...local, stdin, cwd: io.cwd, all: flags.all },
          web,
        ),
    )
    if (interruption) {
      this.#partialSummary = summary
      throw interruption.error
    }
    printIngestSummary(output, summary, flags.verbose)
    if (summary.tally.failed > 0) this.exitCode = exit.failed
  }

  private async plan(destination: Destination, selection: IngestSelection, price: number | undefined) {
    const { client, signal, output } = this
    const base = await destination.find(destination.name).catch(error => {
      if (error instanceof WbError && error.code === 'knowledge_base_not_found') return undefined
      throw error
    })
    const { workspaceId } = base ?? (await this.workspace())
    const options = { client, signal, workspaceId, base, pricePerMillionTokens: price }
    const plan = await this.waitFor('reading', planIngest(options, readSources(selection)))
    printIngestPlan(output, plan, price)
  }
}

/** @throws UsageError  the price is not a number of at least 0 */
function parsePrice(text: string): number {
  const price = text.trim() === '' ? Number.NaN : Number(text)
  if (price >= 0 && Number.isFinite(price)) return price
  throw new UsageError(`--price takes a number of at least 0, not "${text}"`)
}

/** Prevents the creation of a knowledge base if none of the paths exists. @throws UsageError */
function requireAnyPath(paths: readonly string[], cwd: string): void {
  if (
    paths.some(
      path =>
        path === '-' || isDynamicPattern(path) || isRemote(path) || existsSync(resolveTypedPath(cwd, path)),
    )
  )
    return
  throw new UsageError(`${paths.join(', ')} not found; no knowledge base was created`)
}
