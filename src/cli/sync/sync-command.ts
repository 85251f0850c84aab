import { realpath, stat } from 'node:fs/promises'
import { type Document, documents } from '../../contract/documents.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { WbCommand } from '../command/command.ts'
import { exit } from '../command/exit.ts'
import { UsageError } from '../errors.ts'
import { type FindOrCreateBaseOptions, findOrCreateBase } from '../ingest/find-or-create-base.ts'
import { storeIngestedFolders } from '../ingest/ingested-folders.ts'
import { systemFailure } from '../ingest/read-text.ts'
import { isTemporaryFailure } from '../is-temporary-failure.ts'
import { resolveTypedPath } from '../resolve-typed-path.ts'
import { formatCounted } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { applyPlan, newOutcome, type SyncOutcome } from './apply-plan.ts'
import { FolderReader, type FolderState } from './folder-files.ts'
import { folderIdOf } from './folder-id.ts'
import { isEmptyPlan, planSync, type SyncPlan } from './sync-plan.ts'
import { printPlan, printSyncResult, type SyncResult } from './sync-summary.ts'
import { folderChanges } from './watch-folder.ts'

/** Values of the flags of `wb kb sync`. */
export interface SyncFlags {
  readonly create: boolean
  readonly 'dry-run': boolean
  readonly delete: boolean
  readonly watch: boolean
  readonly adopt: boolean
  readonly yes: boolean
  readonly as?: string
}

/** The target knowledge base. If `find` does not find it, it is created with this name. */
type Destination = Pick<FindOrCreateBaseOptions, 'name' | 'find'>

interface SyncedFolder {
  readonly base: KnowledgeBase
  /** Absolute path without symbolic links. */
  readonly folder: string
  readonly folderId: string
  readonly reader: FolderReader
}

/** Base class of the command that syncs the documents of a folder with its files. */
export abstract class SyncCommand extends WbCommand {
  /** Result of the work that was completed before an error. */
  #partial: SyncResult | undefined

  /** Reports the error first, because it explains the counts. Prints no counts if nothing was done. */
  override async catch(error: Error): Promise<void> {
    await super.catch(error)
    if (this.#partial) printSyncResult(this.output, this.#partial)
  }

  protected async sync(destination: Destination, path: string, flags: SyncFlags): Promise<void> {
    const folder = await this.#openFolder(path)
    const { client, signal } = this
    const { base, created } = await findOrCreateBase({
      client,
      signal,
      ...destination,
      isWorkspaceNamed: this.profile.workspace !== undefined,
      workspace: () => this.workspaceOrDefault(),
      confirm: async question => !flags['dry-run'] && (flags.create || (await this.askYesNo(question))),
    })
    if (created) this.output.note(`  created knowledge base ${base.name}`)
    const folderId = flags.as ?? folderIdOf(folder)
    storeIngestedFolders(this.profile, base, [folder])
    const synced = { base, folder, folderId, reader: new FolderReader(folder) }
    await this.#syncOnce(synced, flags)
    if (flags.watch && !flags['dry-run']) await this.#watch(synced, flags)
  }

  /** @throws UsageError  the folder does not exist, or is a file */
  async #openFolder(path: string): Promise<string> {
    const typed = resolveTypedPath(this.io.cwd, path)
    try {
      const folder = await realpath(typed)
      if ((await stat(folder)).isDirectory()) return folder
    } catch (error) {
      throw new UsageError(`${path}: ${systemFailure(error).message}`)
    }
    throw new UsageError(`${path} is not a folder`, [`wb kb ingest NAME ${path}`])
  }

  /** Compares the folder, and applies the changes. In later rounds of `--watch`, says nothing if nothing changed. */
  async #syncOnce(synced: SyncedFolder, flags: SyncFlags, isRepeated = false): Promise<void> {
    const { base, folderId } = synced
    const startedMs = this.io.clock.now()
    const { state, plan } = await this.#plan(synced, flags)
    const outcome = newOutcome()
    for (const problem of state.problems) outcome.tally.countFailure(problem)
    for (const skipped of state.skipped) outcome.tally.countSkipped(skipped)
    const finish = (applied: SyncPlan): SyncResult => ({
      base,
      folderId,
      plan,
      applied,
      outcome,
      isDryRun: flags['dry-run'],
      elapsedMs: this.io.clock.now() - startedMs,
    })
    if (flags['dry-run']) return printSyncResult(this.output, finish({ ...plan, ...emptyPlan }))
    const applied = { ...plan, deleted: await this.#confirmDeletions(plan, state, flags, isRepeated) }
    await this.#apply(synced, applied, outcome).catch(error => {
      if (!isEmptyPlan(applied)) this.#partial = finish(applied)
      throw error
    })
    if (!isRepeated || !isEmptyPlan(applied)) printSyncResult(this.output, finish(applied))
    const isComplete = outcome.tally.failed === 0 && plan.taken.length === 0
    this.exitCode = isComplete ? exit.ok : exit.failed
  }

  async #plan(
    { base, folderId, reader }: SyncedFolder,
    { adopt }: SyncFlags,
  ): Promise<{ state: FolderState; plan: SyncPlan }> {
    const { workspaceId, knowledgeBaseId } = base
    this.progress.spin('comparing')
    const state = await reader.read(this.signal)
    const all: Document[] = []
    const params = { workspaceId, knowledgeBaseId }
    for await (const document of this.client.items(documents.list, { params }, { signal: this.signal }))
      all.push(document)
    this.progress.end()
    return { state, plan: planSync(state, all, { folderId, adopts: adopt }) }
  }

  /** Returns the documents that may be deleted. An empty folder can be a missing disk, so `--delete` is not enough then. */
  async #confirmDeletions(
    plan: SyncPlan,
    { files }: FolderState,
    flags: SyncFlags,
    isRepeated: boolean,
  ): Promise<readonly Document[]> {
    const { deleted } = plan
    if (deleted.length === 0 || flags.yes || (flags.delete && files.size > 0)) return deleted
    if (isRepeated || !this.canAsk) return []
    printPlan(this.output, plan)
    const target = formatCounted(deleted.length, 'document')
    return (await this.askYesNo(`Delete ${target} whose files are gone?`, false)) ? deleted : []
  }

  async #apply({ base, folderId }: SyncedFolder, plan: SyncPlan, outcome: SyncOutcome): Promise<void> {
    const { client, signal, progress } = this
    const total = plan.added.length + plan.changed.length + plan.renamed.length
    const showProgress = () => {
      const { added, replaced, duplicates, failed } = outcome.tally
      const done = Math.min(total, added + replaced + duplicates + failed + outcome.renamed)
      if (total > 0) progress.step({ label: base.name, done, total, unit: 'docs' })
    }
    showProgress()
    try {
      await applyPlan({ client, base, signal, folderId }, plan, outcome, showProgress)
    } finally {
      progress.end()
    }
  }

  /** Repeats the comparison until the command is interrupted. Waits if the runtime is not available. */
  async #watch(synced: SyncedFolder, flags: SyncFlags): Promise<void> {
    const { signal, output } = this
    output.note(`  watching ${plainLine(synced.folder)}; Ctrl-C to stop`)
    const onUnwatched = () =>
      output.warn('  this system cannot watch the folder, so it is compared once a minute')
    for await (const _ of folderChanges(synced.folder, { signal, onUnwatched })) {
      try {
        await this.#syncOnce(synced, flags, true)
      } catch (error) {
        if (signal.aborted) return
        if (!isTemporaryFailure(error)) throw error
        this.#partial = undefined
        output.warn('  the runtime is not available; the folder is compared again in a minute')
      }
    }
  }
}

const emptyPlan = { added: [], changed: [], renamed: [], retired: [], deleted: [] } as const
