import { existsSync } from 'node:fs'
import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { isDynamicPattern } from 'tinyglobby'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { WbCommand } from '../command/command.ts'
import { exit } from '../command/exit.ts'
import { UsageError } from '../errors.ts'
import { resolveTypedPath } from '../resolve-typed-path.ts'
import { findOrCreateBase } from './find-or-create-base.ts'
import { ingest } from './ingest.ts'
import { selectStdin } from './sources.ts'
import { type IngestSummary, printIngestSummary } from './summary.ts'

/** First path argument of commands that ingest files. More paths can follow. */
export const pathArg = {
  ...Args.string({
    required: true,
    ignoreStdin: true,
    description: 'files, folders, globs, .jsonl in BEIR format, or - for stdin',
  }),
  pathQuestion: 'Which file or folder?',
}

/** Flags of commands that ingest files. */
export const ingestFlags = {
  create: Flags.boolean({ summary: 'create the knowledge base if it does not exist' }),
  async: Flags.boolean({ summary: 'ingest in background jobs' }),
  all: Flags.boolean({ summary: 'include hidden files and files that .gitignore excludes' }),
  name: Flags.string({ summary: 'file name for stdin', helpValue: 'FILE' }),
  verbose: Flags.boolean({ summary: 'list the names of all skipped and failed files' }),
}

/** Values of {@link ingestFlags}. */
interface IngestFlags {
  readonly create: boolean
  readonly async: boolean
  readonly all: boolean
  readonly name?: string
  readonly verbose: boolean
}

/** The target knowledge base. If `find` does not find it, it is created with this name. */
interface Destination {
  readonly name: string
  find(name: string): Promise<KnowledgeBase>
}

/** Base class of commands that ingest files into a knowledge base. */
export abstract class IngestCommand extends WbCommand {
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
    if (created) output.note(`  created knowledge base ${base.name}`)
    const jobs = flags.async ? (output.interactive ? 'wait' : 'detach') : undefined
    const { summary, interruption } = await ingest(
      { client, signal, progress, base, jobs },
      { paths, stdin, cwd: io.cwd, all: flags.all },
    )
    if (interruption) {
      this.#partialSummary = summary
      throw interruption.error
    }
    printIngestSummary(output, summary, flags.verbose)
    if (summary.tally.failed > 0) this.exitCode = exit.failed
  }
}

/** Prevents the creation of a knowledge base if none of the paths exists. @throws UsageError */
function requireAnyPath(paths: readonly string[], cwd: string): void {
  if (paths.some(path => path === '-' || isDynamicPattern(path) || existsSync(resolveTypedPath(cwd, path))))
    return
  throw new UsageError(`${paths.join(', ')} not found; no knowledge base was created`)
}
