import { realpath, stat } from 'node:fs/promises'
import { type Document, documents } from '../../contract/documents.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { WbCommand } from '../command/command.ts'
import { exit } from '../command/exit.ts'
import { UsageError } from '../errors.ts'
import {
  type FindOrCreateBaseOptions,
  findBaseIfPresent,
  findOrCreateBase,
} from '../ingest/find-or-create-base.ts'
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
  /** Absolute path without symbolic links. */
  readonly folder: string
  readonly folderId: string
  readonly reader: FolderReader
}

/** A folder, and the documents to compare it with. */
interface Comparison {
  readonly state: FolderState
  readonly plan: SyncPlan
  readonly outcome: SyncOutcome
  /** Returns the result if this part of the plan was applied. */
  resultOf(applied: SyncPlan): SyncResult
}

/** Base class of the command that syncs the documents of a folder with its files. */
export abstract class SyncCommand extends WbCommand {
  protected override readonly finishesBackgroundWork = true

  /** Result of the work that was completed before an error. */
  #partial: SyncResult | undefined

  /** Reports the error first, because it explains the counts. Prints no counts if nothing was done. */
  override async catch(error: Error): Promise<void> {
    await super.catch(error)
    if (this.#partial) printSyncResult(this.output, this.#partial)
  }

  protected async sync(destination: Destination, path: string, flags: SyncFlags): Promise<void> {
    const folder = await this.#openFolder(path)
    const synced = {
      folder,
      folderId: flags.as ?? folderIdOf(folder),
      reader: new FolderReader(folder),
    }
    const isWorkspaceNamed = this.profile.workspace !== undefined
    if (flags['dry-run'] && flags.create) {
      const base = await findBaseIfPresent({ ...destination, isWorkspaceNamed })
      return this.#preview(base, synced, flags)
    }
    const { client, signal } = this
    const { base, created } = await findOrCreateBase({
      client,
      signal,
      ...destination,
      isWorkspaceNamed,
      workspace: () => this.workspaceOrDefault(),
      confirm: async question => !flags['dry-run'] && (flags.create || (await this.askYesNo(question))),
    })
    if (flags['dry-run']) return this.#preview(base, synced, flags)
    if (created) this.output.note(`  created knowledge base ${base.name}`)
    storeIngestedFolders(this.profile, base, [folder])
    await this.#syncOnce(base, synced, flags)
    if (flags.watch) await this.#watch(base, synced, flags)
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

  /** Compares the folder, and applies the changes. In later rounds of `--watch`, prints nothing if nothing changed. */
  async #syncOnce(
    base: KnowledgeBase,
    synced: SyncedFolder,
    flags: SyncFlags,
    isRepeated = false,
  ): Promise<void> {
    const { state, plan, outcome, resultOf } = await this.#compare(base, synced, flags)
    const applied = { ...plan, deleted: await this.#confirmDeletions(plan, state, flags, isRepeated) }
    await this.#apply(base, synced, applied, outcome).catch(error => {
      if (!isEmptyPlan(applied)) this.#partial = resultOf(applied)
      throw error
    })
    if (!isRepeated || !isEmptyPlan(applied)) printSyncResult(this.output, resultOf(applied))
    const isComplete = outcome.tally.failed === 0 && plan.taken.length === 0
    this.exitCode = isComplete ? exit.ok : exit.failed
  }

  /** Prints what would change. `base` is undefined if the knowledge base does not exist yet. */
  async #preview(base: KnowledgeBase | undefined, synced: SyncedFolder, flags: SyncFlags): Promise<void> {
    const { plan, resultOf } = await this.#compare(base, synced, flags)
    printSyncResult(this.output, resultOf({ ...plan, ...emptyPlan }))
  }

  async #compare(
    base: KnowledgeBase | undefined,
    { folderId, reader }: SyncedFolder,
    flags: SyncFlags,
  ): Promise<Comparison> {
    const startedMs = this.io.clock.now()
    this.progress.spin('comparing')
    const state = await reader.read(this.signal)
    const all = base ? await this.#documentsOf(base) : []
    this.progress.end()
    const plan = planSync(state, all, { folderId, adopts: flags.adopt })
    const outcome = newOutcome()
    for (const problem of state.problems) outcome.tally.countFailure(problem)
    for (const skipped of state.skipped) outcome.tally.countSkipped(skipped)
    const resultOf = (applied: SyncPlan): SyncResult => ({
      base,
      folderId,
      plan,
      applied,
      outcome,
      isDryRun: flags['dry-run'],
      elapsedMs: this.io.clock.now() - startedMs,
    })
    return { state, plan, outcome, resultOf }
  }

  async #documentsOf({ workspaceId, knowledgeBaseId }: KnowledgeBase): Promise<Document[]> {
    const all: Document[] = []
    const input = { params: { workspaceId, knowledgeBaseId }, query: { own: 'true' } } as const
    for await (const document of this.client.items(documents.list, input, { signal: this.signal }))
      all.push(document)
    return all
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

  async #apply(
    base: KnowledgeBase,
    { folderId }: SyncedFolder,
    plan: SyncPlan,
    outcome: SyncOutcome,
  ): Promise<void> {
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
  async #watch(base: KnowledgeBase, synced: SyncedFolder, flags: SyncFlags): Promise<void> {
    const { signal, output } = this
    output.note(`  watching ${plainLine(synced.folder)}; Ctrl-C to stop`)
    const onUnwatched = () =>
      output.warn('  this system cannot watch the folder, so it is compared once a minute')
    for await (const _ of folderChanges(synced.folder, { signal, onUnwatched })) {
      try {
        await this.#syncOnce(base, synced, flags, true)
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
