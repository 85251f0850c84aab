import type { Caller } from '../../access/caller.ts'
import { type Clock, timestamp } from '../../base/clock.ts'
import { newId } from '../../base/id.ts'
import type { Log } from '../../base/log.ts'
import type { OpenPassageCheck } from '../../knowledge/passage-visibility.ts'
import { changeRow } from '../../storage/change-row.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type MessageRow, tables } from '../../storage/tables.ts'
import { emptyMessageFields } from '../messages.ts'
import type { AnsweringModel } from './answering-model.ts'
import { summaryMetadata } from './conversation-summary.ts'
import type { StoredConversationKey } from './current-version.ts'
import { type History, openHistory, sourcesOfTurns } from './history.ts'
import type { PastTurn } from './past-turns.ts'
import { historyTokensFor, minimumTokens } from './request-budget.ts'
import { listQuestions, summarize, type WrittenSummary } from './summarize.ts'
import { DataTags } from './system-prompt.ts'

/**
 * Shares of the token budget for earlier turns. If the turns use more than `start`, the oldest are summarized until the
 * others use at most `remain`.
 */
const compactionShares = { start: 0.8, remain: 0.5 }

/** Maximum number of summaries in progress: in total, and for one workspace. */
const runningMax = { total: 16, perWorkspace: 4 }

export interface CompactionDependencies {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
  readonly openPassageCheck: OpenPassageCheck
}

/** A conversation, and the model that answers in it. */
export interface CompactedConversation {
  /** Caller of the last turn. The summary contains only what it may see. */
  readonly caller: Pick<Caller, 'rowAccess'>
  readonly workspaceId: string
  readonly conversationId: string
  readonly model: AnsweringModel
  readonly hasTools: boolean
}

interface RunningCompaction {
  readonly workspaceId: string
  readonly controller: AbortController
  readonly work: Promise<void>
}

/**
 * Summarizes the oldest turns of long conversations in the background, at most one summary at a time for each
 * conversation. Stores each summary as a message with the role `system`.
 *
 * @see docs/decisions/0032-memory.md
 */
export class Compactions {
  readonly #deps: CompactionDependencies
  readonly #running = new Map<string, RunningCompaction>()
  #isClosed = false

  constructor(deps: CompactionDependencies) {
    this.#deps = deps
  }

  /**
   * Starts a summary if the conversation is too long, unless a summary of it or too many other summaries are in
   * progress. Call it after each answer. Never throws.
   */
  startIfNeeded(conversation: CompactedConversation): void {
    const { conversationId, workspaceId } = conversation
    const key = keyOf(conversation)
    if (this.#running.has(key) || this.#isClosed || !this.#hasCapacity(workspaceId)) return
    const controller = new AbortController()
    const work = this.#compact(conversation, controller.signal)
      .catch(error => this.#deps.log.error({ workspaceId, conversationId, error }, 'a summary failed'))
      .finally(() => this.#running.delete(key))
    this.#running.set(key, { workspaceId, controller, work })
  }

  #hasCapacity(workspaceId: string): boolean {
    const runningInWorkspace = [...this.#running.values()].filter(
      running => running.workspaceId === workspaceId,
    )
    return this.#running.size < runningMax.total && runningInWorkspace.length < runningMax.perWorkspace
  }

  /** Cancels the running summary of a conversation, so that its next question does not wait for the model. */
  interrupt(conversationKey: StoredConversationKey): void {
    this.#running.get(keyOf(conversationKey))?.controller.abort()
  }

  /** Resolves when all summaries in progress have ended. */
  async whenIdle(): Promise<void> {
    await Promise.all(Array.from(this.#running.values(), ({ work }) => work))
  }

  /**
   * Cancels all model calls, and waits until all summaries have ended. If the turns of a conversation no longer fit, a
   * list of its questions is stored as the summary.
   */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const { controller } of this.#running.values()) controller.abort()
    await this.whenIdle()
  }

  async #compact(
    { caller, model, hasTools, workspaceId, conversationId }: CompactedConversation,
    signal: AbortSignal,
  ): Promise<void> {
    const { rows, clock } = this.#deps
    const conversationKey = { workspaceId, conversationId }
    const tokens = historyTokensFor(model.contextTokens - model.maxTokens, hasTools)
    const dataTags = new DataTags()
    const history = await (await openHistory(rows, conversationKey)).read({
      tokens: 2 * tokens,
      dataTags,
      replaced: [],
      check: await this.#deps.openPassageCheck(workspaceId, caller),
    })
    const oldest = oldestTurns(history.turns, tokens)
    if (oldest.length === 0) return
    const summary = await this.#writeSummary(history, oldest, { model, tokens, signal })
    if (!summary) return
    const lastCovered = oldest.at(-1)!.rows.at(-1)!
    const metadata = { ...summaryMetadata(describeCoverage(history, oldest)), ...summary.metadata }
    const row: MessageRow = {
      ...emptyMessageFields,
      ...conversationKey,
      messageId: newId(),
      messageTs: timeAfterLastMessage(timestamp(clock), history.lastAt),
      role: 'system',
      content: summary.text,
      metadata,
      ...sourcesOfTurns(history.summary, oldest).toField(),
    }
    const key = [workspaceId, conversationId]
    // Fails if the conversation, or a message that the summary covers, was deleted or replaced in the meantime. The
    // transaction includes the conversation row, so that it conflicts with a switch to another version of a question.
    await changeRow(
      rows,
      tables.conversations,
      key,
      conversation => conversation,
      () => [
        { op: 'require', table: tables.messages, key: [...key, lastCovered.messageId] },
        { op: 'insert', table: tables.messages, row },
      ],
    )
  }

  /**
   * Summarizes turns with the model. If the model fails and the turns no longer fit, lists their questions instead. If
   * they still fit, returns undefined, because the model can succeed after the next turn.
   */
  async #writeSummary(
    history: History,
    oldest: readonly PastTurn[],
    { model, tokens, signal }: { model: AnsweringModel; tokens: number; signal: AbortSignal },
  ): Promise<WrittenSummary | undefined> {
    const { clock, log } = this.#deps
    const previousSummary = history.summary?.text
    try {
      return await summarize(previousSummary, oldest, { model, clock, signal })
    } catch (error) {
      log.info({ model: model.model, error }, 'the model wrote no summary of a conversation')
    }
    return minimumTokens(history.messages) > tokens
      ? listQuestions(previousSummary, oldest, model)
      : undefined
  }
}

/** Returns a key that includes the workspace, because conversation IDs are unique only there. */
function keyOf({ workspaceId, conversationId }: StoredConversationKey): string {
  return JSON.stringify([workspaceId, conversationId])
}

/** Returns the turns to summarize; none if the conversation is still short. The newest turn is never included. */
function oldestTurns(turns: readonly PastTurn[], tokens: number): readonly PastTurn[] {
  const sizes = turns.map(({ messages }) => minimumTokens(messages))
  let total = sizes.reduce((sum, size) => sum + size, 0)
  if (total <= compactionShares.start * tokens) return []
  let count = 0
  while (count < turns.length - 1 && total > compactionShares.remain * tokens) total -= sizes[count++]!
  return turns.slice(0, count)
}

function describeCoverage({ summary, lastCitation }: History, oldest: readonly PastTurn[]) {
  const rows = oldest.flatMap(turn => turn.rows)
  return {
    coveredUntil: rows.at(-1)!.messageTs,
    coveredCount: (summary?.coveredCount ?? 0) + rows.length,
    lastCitation,
  }
}

/** Returns the current time, or one millisecond after the last message if that is later. */
function timeAfterLastMessage(now: string, lastAt: string | undefined): string {
  return lastAt === undefined || now > lastAt ? now : new Date(Date.parse(lastAt) + 1).toISOString()
}
