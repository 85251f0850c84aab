import type { Caller } from '../access/caller.ts'
import { runUntilCallerDisconnects } from '../access/run-until-caller-disconnects.ts'
import { pause } from '../base/pause.ts'
import { operator } from '../contract/access.ts'
import type { CompactionProgress, KnowledgeBaseCompaction } from '../contract/knowledge.ts'
import type { ServerEvent } from '../contract/route.ts'
import type { CompactedSize } from '../storage/content.ts'
import type { BaseKey } from './document-key.ts'
import type { FailureReporter } from './ingest-lines.ts'
import { type KnowledgeBases, requireFullVisibility } from './knowledge-bases.ts'

/** Time in milliseconds between events. */
const PROGRESS_MS = 100

/** A compaction for a caller. */
interface Compaction {
  /** Compacts a knowledge base until the signal fires. */
  run(
    signal: AbortSignal,
    onProgress?: (progress: CompactionProgress) => void,
  ): Promise<KnowledgeBaseCompaction>
  /** @throws knowledge_base_not_found, forbidden  the caller may no longer see the sizes */
  confirmAccess(): Promise<void>
}

/** Removes deleted chunks from the indexes of knowledge bases, while a client waits. */
export class Compactor {
  readonly #bases: KnowledgeBases
  readonly #reportFailure: FailureReporter

  constructor(bases: KnowledgeBases, reportFailure: FailureReporter) {
    this.#bases = bases
    this.#reportFailure = reportFailure
  }

  /**
   * Compacts a knowledge base.
   *
   * @throws knowledge_base_not_found, collection_unavailable
   * @throws forbidden  the caller may see only some rows, which the sizes would reveal
   * @throws unauthorized, forbidden  the caller lost its access in the meantime; nothing is undone
   */
  async run(baseKey: BaseKey, caller: Caller): Promise<KnowledgeBaseCompaction> {
    const compaction = await this.#prepare(baseKey, caller)
    return runUntilCallerDisconnects(caller, signal => compaction.run(signal))
  }

  /** Like {@link run}, but returns events. An error that occurs later is the last event. */
  async stream(baseKey: BaseKey, caller: Caller): Promise<AsyncIterable<ServerEvent>> {
    return this.#events(await this.#prepare(baseKey, caller), caller)
  }

  async #prepare(baseKey: BaseKey, caller: Caller): Promise<Compaction> {
    const { workspaceId, knowledgeBaseId } = baseKey
    const { base, store, key } = await this.#bases.openContext(workspaceId, knowledgeBaseId)
    const confirmAccess = async () => {
      const current = await this.#bases.get(workspaceId, knowledgeBaseId)
      const access = await caller.rowAccess(workspaceId)
      requireFullVisibility(access.visibility(current, { action: 'list' }))
    }
    await confirmAccess()
    // The file has the content of all workspaces.
    const canSeeFile = await caller.can(operator)
    const visible = (size: CompactedSize) => ({ ...size, file: canSeeFile ? size.file : null })
    return {
      confirmAccess,
      run: (signal, onProgress = () => {}) =>
        this.#bases.withDeletionCheck(base, async () => {
          const compaction = await store.compact?.(key, { signal, onProgress })
          await caller.reauthorize()
          await confirmAccess()
          const { before, after } = compaction ?? { before: nothing, after: nothing }
          return { workspaceId, knowledgeBaseId, before: visible(before), after: visible(after) }
        }),
    }
  }

  async *#events(
    compaction: Compaction,
    { requestId }: Caller,
  ): AsyncGenerator<ServerEvent, void, undefined> {
    const cancel = new AbortController()
    let progress: CompactionProgress | undefined
    let last: Omit<ServerEvent, 'id'> | undefined
    const fail = (error: unknown) => {
      const { code, message } = this.#reportFailure(error, requestId).envelope.error
      last ??= { event: 'error', data: { code, message } }
    }
    const ended = compaction
      .run(cancel.signal, latest => {
        progress = latest
      })
      .then(data => {
        last ??= { event: 'done', data }
      }, fail)
    try {
      while (!last) {
        await Promise.race([ended, pause(PROGRESS_MS, cancel.signal)])
        if (!last) await compaction.confirmAccess().catch(fail)
        if (!last && progress) yield { id: '', event: 'progress', data: progress }
      }
      yield { id: '', ...last }
    } finally {
      cancel.abort()
    }
  }
}

const nothing: CompactedSize = { index: null, file: null }
