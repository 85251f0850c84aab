import { type Clock, timestamp } from '../../base/clock.ts'
import { newId } from '../../base/id.ts'
import type { Log } from '../../base/log.ts'
import { changeRow } from '../../storage/change-row.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type MessageRow, tables } from '../../storage/tables.ts'
import { emptyFields } from '../messages.ts'
import type { AnsweringModel } from './answering-model.ts'
import { summaryMetadata } from './conversation-summary.ts'
import type { StoredConversationKey } from './current-version.ts'
import { type History, openHistory } from './history.ts'
import type { PastTurn } from './past-turns.ts'
import { historyTokensFor, minimumTokens } from './request-budget.ts'
import { listQuestions, summarize, type WrittenSummary } from './summarize.ts'
import { QuoteMarks } from './system-prompt.ts'

/**
 * Shares of the token budget for earlier turns. Above `begin`, the oldest turns are summarized until at most
 * `remain` is left.
 */
const compactionShares = { begin: 0.8, remain: 0.5 }

/** Maximum number of summaries that are written at the same time: in total, and for one workspace. */
const runningMax = { all: 16, ofWorkspace: 4 }

export interface CompactionParts {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
}

/** A conversation and the model that answers in it. */
export interface CompactedConversation {
  readonly workspaceId: string
  readonly conversationId: string
  readonly model: AnsweringModel
  readonly hasTools: boolean
}

interface RunningCompaction {
  readonly workspaceId: string
  readonly stop: AbortController
  readonly work: Promise<void>
}

/**
 * Summarizes the oldest turns of long conversations in the background, one call of a model at a time for each
 * conversation. A summary is stored as a message of the role `system`.
 *
 * @see docs/decisions/0032-memory.md
 */
export class Compactions {
  readonly #parts: CompactionParts
  readonly #running = new Map<string, RunningCompaction>()
  #isClosed = false

  constructor(parts: CompactionParts) {
    this.#parts = parts
  }

  /**
   * Starts a summary if the conversation needs one, it has no running summary, and the maximum number of running
   * summaries is not reached. Call it after each answer. Never fails.
   */
  begin(compacted: CompactedConversation): void {
    const { conversationId, workspaceId } = compacted
    const key = keyOf(compacted)
    if (this.#running.has(key) || this.#isClosed || !this.#hasRoom(workspaceId)) return
    const stop = new AbortController()
    const work = this.#compact(compacted, stop.signal)
      .catch(error => this.#parts.log.error({ workspaceId, conversationId, error }, 'a summary failed'))
      .finally(() => this.#running.delete(key))
    this.#running.set(key, { workspaceId, stop, work })
  }

  #hasRoom(workspaceId: string): boolean {
    const own = [...this.#running.values()].filter(running => running.workspaceId === workspaceId)
    return this.#running.size < runningMax.all && own.length < runningMax.ofWorkspace
  }

  /** Cancels the running summary of a conversation, so that its next question does not wait for the model. */
  interrupt(place: StoredConversationKey): void {
    this.#running.get(keyOf(place))?.stop.abort()
  }

  /** Resolves when no summary is running. */
  async whenIdle(): Promise<void> {
    await Promise.all(Array.from(this.#running.values(), ({ work }) => work))
  }

  /** Cancels all model calls, and waits. A conversation whose turns no longer fit gets a summary without a model. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const { stop } of this.#running.values()) stop.abort()
    await this.whenIdle()
  }

  async #compact(
    { model, hasTools, workspaceId, conversationId }: CompactedConversation,
    signal: AbortSignal,
  ): Promise<void> {
    const { rows, clock } = this.#parts
    const place = { workspaceId, conversationId }
    const tokens = historyTokensFor(model.contextTokens - model.maxTokens, hasTools)
    const marks = new QuoteMarks()
    const history = await (await openHistory(rows, place)).read({ tokens: 2 * tokens, marks, replaced: [] })
    const oldest = oldestTurns(history.turns, tokens)
    if (oldest.length === 0) return
    const written = await this.#written(history, oldest, { model, tokens, signal })
    if (!written) return
    const covered = oldest.at(-1)!.rows.at(-1)!
    const metadata = { ...summaryMetadata(coveredBy(history, oldest)), ...written.metadata }
    const row: MessageRow = {
      ...emptyFields,
      ...place,
      messageId: newId(),
      messageTs: laterTime(timestamp(clock), history.lastAt),
      role: 'system',
      content: written.text,
      metadata,
    }
    const key = [workspaceId, conversationId]
    // The write fails if the conversation or a covered message was deleted or replaced in the meantime. Writing the
    // conversation makes it conflict with a switch of the version of a covered question.
    await changeRow(
      rows,
      tables.conversations,
      key,
      conversation => conversation,
      () => [
        { op: 'require', table: tables.messages, key: [...key, covered.messageId] },
        { op: 'insert', table: tables.messages, row },
      ],
    )
  }

  /** Writes a summary without the model, but only if turns no longer fit: the model may succeed after the next turn. */
  async #written(
    history: History,
    oldest: readonly PastTurn[],
    { model, tokens, signal }: { model: AnsweringModel; tokens: number; signal: AbortSignal },
  ): Promise<WrittenSummary | undefined> {
    const { clock, log } = this.#parts
    const earlier = history.summary?.text
    try {
      return await summarize(earlier, oldest, { model, clock, signal })
    } catch (error) {
      log.info({ model: model.model, error }, 'the model wrote no summary of a conversation')
    }
    return minimumTokens(history.messages) > tokens ? listQuestions(earlier, oldest, model) : undefined
  }
}

/** Conversation IDs are unique only in their workspace. */
function keyOf({ workspaceId, conversationId }: StoredConversationKey): string {
  return JSON.stringify([workspaceId, conversationId])
}

/** Returns the turns to summarize; none if the conversation is still short. The newest turn is never among them. */
function oldestTurns(turns: readonly PastTurn[], tokens: number): readonly PastTurn[] {
  const sizes = turns.map(({ messages }) => minimumTokens(messages))
  let total = sizes.reduce((sum, size) => sum + size, 0)
  if (total <= compactionShares.begin * tokens) return []
  let count = 0
  while (count < turns.length - 1 && total > compactionShares.remain * tokens) total -= sizes[count++]!
  return turns.slice(0, count)
}

function coveredBy({ summary, citations }: History, oldest: readonly PastTurn[]) {
  const rows = oldest.flatMap(turn => turn.rows)
  const cited = citations.toSorted((a, b) => a.number - b.number)
  return {
    through: rows.at(-1)!.messageTs,
    covered: (summary?.covered ?? 0) + rows.length,
    lastCitation: cited.at(-1),
  }
}

/** Returns the later of two times. */
function laterTime(now: string, lastAt: string | undefined): string {
  return lastAt === undefined || now > lastAt ? now : new Date(Date.parse(lastAt) + 1).toISOString()
}
