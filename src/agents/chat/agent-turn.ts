import { type Clock, timestamp } from '../../base/clock.ts'
import type { Agent } from '../../contract/agents.ts'
import type { SentenceRange, ToolCall, TurnEvent } from '../../contract/chat.ts'
import type { Message } from '../../contract/conversations.ts'
import { WbError } from '../../contract/errors.ts'
import type { ImageInput } from '../../contract/images.ts'
import type { AnswerPart } from '../../models/chat/answer-splitter.ts'
import type { ChatMessage, Completion, SamplingSettings } from '../../models/chat/completion.ts'
import { ProviderFailure } from '../../models/provider/provider-failure.ts'
import type { MessageSource } from '../../storage/tables.ts'
import { toMessage } from '../messages.ts'
import type { ToolPassage } from '../tools/tool.ts'
import type { AnswerCheck } from './answer-check.ts'
import {
  addCompletion,
  answerMetadata,
  emptyTally,
  type TurnEnding,
  type TurnTally,
} from './answer-metadata.ts'
import type { AnsweringModel } from './answering-model.ts'
import { CitationReader } from './citation-reader.ts'
import type { Citations } from './citations.ts'
import type { History } from './history.ts'
import { historyWithoutImages, type ImageHistory } from './past-images.ts'
import { ReasoningRecord } from './reasoning-record.ts'
import { RepeatedCalls } from './repeated-calls.ts'
import { fitToBudget } from './request-budget.ts'
import { dateSources, SourceSet, sourcesOf } from './sources.ts'
import type { DataTags, NamedBase } from './system-prompt.ts'
import type { StoredToolResult, Transcript } from './transcript.ts'
import type { TurnToolResult, TurnTools } from './turn-tools.ts'

/** Maximum number of model calls in one turn. @see docs/agents.md#which-tools-may-run */
const roundsMax = 6
/** Minimum time in milliseconds between two checks of the sources while the model writes. */
const sourceCheckMs = 1_000

export interface AgentTurnOptions {
  readonly clock: Clock
  readonly model: AnsweringModel
  readonly turnTools: TurnTools
  readonly transcript: Transcript
  readonly history: History
  readonly citations: Citations
  /** Undefined to store answers without a check. */
  readonly answerCheck: Pick<AnswerCheck, 'unsupportedSentences'> | undefined
  readonly bases: readonly TurnBase[]
  readonly agent: Pick<Agent, 'systemPrompt' | 'workspaceId'>
  readonly dataTags: DataTags
  readonly system: string
  /** Passages in the prompt. */
  readonly promptPassages: readonly ToolPassage[]
  /** True if the prompt contains text of documents or attachments, which can contain instructions. */
  readonly promptHasUntrustedText: boolean
  /** The search query; undefined if there was no search. */
  readonly searchQuery: string | undefined
  readonly question: string
  /** Images of the question. */
  readonly images: readonly ImageInput[]
  /** Returns the history with the images of earlier questions. */
  readonly loadPastImages: () => Promise<ImageHistory>
  /** Labels of MCP servers whose tools are left out, because the caller has not signed in to them. */
  readonly signInServers: readonly string[]
  /** True to request unstreamed answers. If the provider rejects the question, it is removed from the conversation. */
  readonly isUnstreamed: boolean
  readonly sampling: SamplingSettings
  /** Prepares the turn again after the model rejected tools: without tools, and with passages in the prompt. */
  readonly prepareWithoutTools: () => Promise<
    Pick<
      AgentTurnOptions,
      'turnTools' | 'system' | 'promptPassages' | 'promptHasUntrustedText' | 'searchQuery'
    >
  >
  /** Returns true if the caller may still see all sources of the turn. */
  readonly areSourcesVisible: (sources: SourceSet) => Promise<boolean>
  /** Aborts when the last reader of the answer has disconnected. */
  readonly signal: AbortSignal
  /** Logs a defect, or a failure of the provider. */
  readonly reportFailure: (error: unknown) => void
  /** Called once when the turn has ended, to record metrics. */
  readonly onEnd: (outcome: TurnOutcome) => void
}

/** A knowledge base of a turn. */
export interface TurnBase extends NamedBase {
  /** False if searches of the knowledge base do not use the sentence model. */
  readonly semantic?: boolean | undefined
}

/** Outcome of a turn: an answer, a failure, or an interruption before the answer was complete. */
export type TurnOutcome = 'ok' | 'error' | 'interrupted'

/**
 * A running model request. `dropped` is the number of omitted earlier messages, and `cut` is the number of shortened
 * tool results.
 */
interface ModelRequestState {
  readonly answerParts: AsyncGenerator<AnswerPart, Completion, undefined>
  readonly firstPart: Promise<IteratorResult<AnswerPart, Completion>>
  readonly dropped: number
  readonly cut: number
}

/** A question to an agent, with the tool calls and the answer. @see docs/decisions/0023-agents.md */
export class AgentTurn {
  #options: AgentTurnOptions
  readonly #exchanges: ChatMessage[] = []
  #tally: TurnTally
  #modelRequest: ModelRequestState | undefined
  #reader: CitationReader
  /** Text that the model has written since its last tool call. */
  #text = ''
  #reasoning: ReasoningRecord
  readonly #repeatedCalls = new RepeatedCalls()
  /** Everything from which the answer can be derived: the history, passages in the prompt, and tool results. */
  readonly #sources = new SourceSet()
  #sourcesCheckedAt: number
  /** Results of built-in tools that contain no passages, such as the number of documents. */
  readonly #factResults: string[] = []
  #hasOtherText = false
  #isFinished = false
  #partialAnswer: Message | undefined

  constructor(options: AgentTurnOptions) {
    this.#options = options
    this.#tally = { ...emptyTally, passages: options.promptPassages, searchQuery: options.searchQuery }
    this.#reader = new CitationReader(options.citations)
    this.#reasoning = new ReasoningRecord(options.clock)
    this.#sources.add(options.history.sources)
    this.#addSources(options.promptPassages.flatMap(sourcesOf))
    this.#sourcesCheckedAt = options.clock.now()
  }

  /**
   * Yields the events of the turn. If the consumer stops early, the turn ends and its partial answer is stored.
   *
   * @throws llm_model_not_chat, llm_model_unavailable  only for unstreamed answers
   * @throws conversation_not_found                     the conversation was deleted before the question was stored
   */
  async *events(): AsyncGenerator<TurnEvent, void, undefined> {
    const { history, release } = await this.#options.loadPastImages()
    this.#options = { ...this.#options, history }
    try {
      yield* this.#events()
    } finally {
      release()
    }
  }

  async *#events(): AsyncGenerator<TurnEvent, void, undefined> {
    const { transcript, question, images, isUnstreamed, promptHasUntrustedText } = this.#options
    // The question is stored while the model prepares its answer.
    if (!isUnstreamed) this.#modelRequest = this.#startRequest()
    const user = await transcript.storeQuestion(question, promptHasUntrustedText, images)
    try {
      yield { event: 'user-message', data: toMessage(user) }
      for (let round = 1; !this.#isFinished; round++) yield* this.#runRound(round)
    } catch (error) {
      if (!this.#options.signal.aborted) yield* this.#fail(error)
    } finally {
      if (!this.#isFinished) await this.#interrupt()
    }
  }

  /** Documents and records that this turn or earlier turns of the conversation have read so far. */
  get sources(): SourceSet {
    return this.#sources
  }

  /** The partial answer of an interrupted turn; undefined before it is stored. */
  get partialAnswer(): Message | undefined {
    return this.#partialAnswer
  }

  async *#runRound(round: number): AsyncGenerator<TurnEvent, void, undefined> {
    const isLast = round === roundsMax || this.#repeatedCalls.repeatsPreviousRound
    const completion = yield* this.#requestAnswer(isLast)
    await this.#requireVisibleSources()
    const { toolCalls, finishReason } = completion
    if (toolCalls.length === 0) yield* this.#end(this.#text, completion, { finishReason })
    else if (!isLast) yield* this.#runCalls(toolCalls, completion)
    else if (this.#text.trim() !== '') yield* this.#end(this.#text, completion, { finishReason: 'stop' })
    else throw new TurnLimitReached(round)
  }

  /** Streams one model answer. @param isLast  true if the model may not call more tools */
  async *#requestAnswer(isLast: boolean): AsyncGenerator<TurnEvent, Completion, undefined> {
    if (!this.#modelRequest) await this.#requireVisibleSources()
    const { answerParts, firstPart, ...fitted } = this.#modelRequest ?? this.#startRequest(isLast)
    this.#modelRequest = undefined
    this.#text = ''
    this.#reader = new CitationReader(this.#options.citations)
    try {
      for (let step = await firstPart; ; step = await answerParts.next()) {
        if (this.#options.clock.now() - this.#sourcesCheckedAt >= sourceCheckMs)
          await this.#requireVisibleSources()
        if (!step.done) {
          yield* this.#handlePart(step.value)
          continue
        }
        this.#reasoning.pause()
        yield* this.#addText(this.#reader.end())
        this.#tally = addCompletion(this.#tally, step.value, fitted)
        return step.value
      }
    } catch (error) {
      if (this.#isToolRejection(error)) await this.#retryWithoutTools()
      else if (this.#isPastImageRejection(error))
        this.#options = { ...this.#options, history: historyWithoutImages(this.#options.history) }
      else throw error
    } finally {
      await answerParts.return(undefined as never).catch(() => {})
    }
    return yield* this.#requestAnswer(isLast)
  }

  #addSources(sources: readonly MessageSource[]): void {
    this.#sources.add(dateSources(sources, timestamp(this.#options.clock)))
  }

  /** @throws SourcesHidden  the caller may no longer see a document or record that the turn has read */
  async #requireVisibleSources(): Promise<void> {
    if (!(await this.#options.areSourcesVisible(this.#sources))) throw new SourcesHidden()
    this.#sourcesCheckedAt = this.#options.clock.now()
  }

  async #retryWithoutTools(): Promise<void> {
    this.#options = { ...this.#options, ...(await this.#options.prepareWithoutTools()) }
    const { promptPassages, promptHasUntrustedText, searchQuery, transcript } = this.#options
    this.#tally = { ...this.#tally, passages: promptPassages, searchQuery }
    this.#addSources(promptPassages.flatMap(sourcesOf))
    if (promptHasUntrustedText) await transcript.markUntrusted()
  }

  /** Returns true if the provider rejected images, and only earlier questions have images. */
  #isPastImageRejection(error: unknown): boolean {
    const { history, images } = this.#options
    const isRejection = error instanceof ProviderFailure && error.facts.kind === 'no_images'
    return isRejection && images.length === 0 && history.messages.some(message => 'images' in message)
  }

  /** Returns true if the provider rejected tools, and the model has not called any yet. */
  #isToolRejection(error: unknown): boolean {
    const { turnTools } = this.#options
    const isRejection = error instanceof ProviderFailure && error.facts.kind === 'no_tools'
    return isRejection && turnTools.specs.length > 0 && this.#exchanges.length === 0
  }

  *#handlePart(part: AnswerPart): Generator<TurnEvent, void, undefined> {
    if (part.kind === 'text') {
      this.#reasoning.pause()
      yield* this.#addText(this.#reader.read(part.delta))
    } else if (part.kind === 'reasoning') yield* this.#addReasoning(part.delta)
    else yield* this.#moveTextToReasoning()
  }

  /** Handles the report that all text so far is reasoning. */
  *#moveTextToReasoning(): Generator<TurnEvent, void, undefined> {
    const text = this.#text + this.#reader.end()
    this.#text = ''
    this.#reader = new CitationReader(this.#options.citations)
    if (text === '') return
    yield { event: 'token-reset', data: {} }
    yield* this.#addReasoning(text)
  }

  *#addReasoning(delta: string): Generator<TurnEvent, void, undefined> {
    this.#reasoning.add(delta)
    yield { event: 'reasoning', data: { delta } }
  }

  /** Starts a model request, which the turn's signal cancels. */
  #startRequest(isLast = false): ModelRequestState {
    const { model, turnTools, isUnstreamed, sampling, signal } = this.#options
    signal.throwIfAborted()
    const { messages, ...fitted } = this.#fitRequest()
    const settings = {
      maxTokens: model.maxTokens,
      tools: turnTools.specs,
      ...(isLast && { toolChoice: 'none' as const }),
      sampling,
      signal,
    }
    const isStreamed = !isUnstreamed && model.supportsStreaming !== false
    const answerParts = isStreamed
      ? model.chat.stream(messages, settings)
      : completeAsStream(model, messages, settings)
    const firstPart = answerParts.next()
    // The promise is awaited later. Until then, a rejection must not be reported as unhandled.
    firstPart.catch(() => {})
    return { answerParts, firstPart, ...fitted }
  }

  #fitRequest() {
    const { model, turnTools, history, system, question, images } = this.#options
    const draft = {
      system,
      history: history.messages,
      question,
      images,
      exchanges: this.#exchanges,
      wantsReasoning: model.wantsReasoning,
      tools: turnTools.specs,
    }
    const { dropped, ...fit } = fitToBudget(draft, model.contextTokens - model.maxTokens)
    return { ...fit, dropped: dropped + history.coveredCount }
  }

  *#addText(delta: string): Generator<TurnEvent, void, undefined> {
    this.#text += delta
    if (delta !== '') yield { event: 'token', data: { delta } }
  }

  async *#runCalls(toolCalls: readonly ToolCall[], { tokenCount, providerFields }: Completion) {
    const { transcript, model } = this.#options
    const metadata = { model: model.model, finish_reason: 'tool_calls' }
    await transcript.storeCalls(this.#text, toolCalls, { tokenCount, metadata })
    const message = { role: 'assistant' as const, content: this.#text, toolCalls }
    this.#exchanges.push(providerFields ? { ...message, providerFields } : message)
    this.#text = ''
    yield { event: 'token-reset', data: {} } satisfies TurnEvent
    yield { event: 'tool-call', data: { toolCalls: [...toolCalls] } } satisfies TurnEvent
    this.#repeatedCalls.startRound(toolCalls)
    for (const call of toolCalls) yield* this.#storeRepeatedResult(call) ?? this.#runCall(call)
  }

  /**
   * Stores the result of an identical earlier call as the result of this call. Returns undefined if there is no such
   * result, so this call must run.
   */
  #storeRepeatedResult(call: ToolCall): AsyncGenerator<TurnEvent, void, undefined> | undefined {
    const result = this.#repeatedCalls.resultOf(call)
    return result && this.#storeResult(call, { ...result, passages: [] }, 0)
  }

  async *#runCall(call: ToolCall): AsyncGenerator<TurnEvent, void, undefined> {
    const { clock, turnTools, signal } = this.#options
    signal.throwIfAborted()
    const approval = turnTools.requestApproval(call, signal)
    if (approval) {
      const { approvalId, expiresAt } = approval
      yield { event: 'tool-approval', data: { approvalId, expiresAt, toolCall: call } }
    }
    const decision = await approval?.decision
    signal.throwIfAborted()
    const startedAt = clock.now()
    const result = await turnTools.run(call, decision, signal)
    this.#repeatedCalls.add(call, result)
    this.#hasOtherText ||= result.hasOtherText
    if (result.passages.length === 0) this.#factResults.push(result.content)
    this.#tally = { ...this.#tally, passages: [...this.#tally.passages, ...result.groundingPassages] }
    yield* this.#storeResult(call, result, clock.now() - startedAt)
  }

  /** Stores a tool result, adds it to the messages for the model, and yields its event. */
  async *#storeResult(
    call: ToolCall,
    { outcome, ...result }: StoredToolResult & Pick<TurnToolResult, 'outcome'>,
    durationMs: number,
  ): AsyncGenerator<TurnEvent, void, undefined> {
    const { transcript, turnTools, dataTags } = this.#options
    const { content } = result
    this.#addSources(result.sources)
    await transcript.storeResult(call, result, turnTools.hasReadUntrusted)
    this.#exchanges.push({ role: 'tool', toolCallId: call.id, content: dataTags.enclose(call.name, content) })
    yield {
      event: 'tool-result',
      data: { toolCallId: call.id, name: call.name, content, outcome, durationMs },
    }
  }

  async *#fail(error: unknown): AsyncGenerator<TurnEvent, void, undefined> {
    const { transcript, isUnstreamed } = this.#options
    if (isUnstreamed && error instanceof WbError && this.#exchanges.length === 0) {
      this.#isFinished = true
      this.#options.onEnd('error')
      await transcript.removeQuestion()
      throw error
    }
    if (error instanceof SourcesHidden) yield* this.#discardAnswer()
    const reason = this.#reasonOf(error)
    const text = this.#text + this.#reader.end()
    yield* this.#end(text || reason, { tokenCount: null }, { finishReason: 'error', error: reason })
  }

  /** Discards what the model has written, because it is derived from sources that the caller may no longer see. */
  *#discardAnswer(): Generator<TurnEvent, void, undefined> {
    if (this.#text !== '') yield { event: 'token-reset', data: {} }
    this.#text = ''
    this.#reader = new CitationReader(this.#options.citations)
    this.#reasoning = new ReasoningRecord(this.#options.clock)
    this.#tally = { ...this.#tally, passages: [], searchQuery: undefined }
  }

  /** Stores the answer and yields the last event. If the answer cannot be stored, the event reports a failure. */
  async *#end(
    content: string,
    { tokenCount }: Pick<Completion, 'tokenCount'>,
    ending: Pick<TurnEnding, 'finishReason' | 'error'>,
  ): AsyncGenerator<TurnEvent, void, undefined> {
    const { transcript, onEnd } = this.#options
    this.#isFinished = true
    const isFailure = ending.finishReason === 'error'
    const unsupported = isFailure ? undefined : await this.#findUnsupported(content)
    onEnd(isFailure ? 'error' : 'ok')
    const metadata = this.#metadata({ ...ending, unsupported })
    const fields = { tokenCount, metadata, ...this.#sources.toField() }
    try {
      const row = await (isFailure
        ? transcript.storeFailedAnswer(content, fields)
        : transcript.storeAnswer(content, fields))
      yield { event: isFailure ? 'error' : 'done', data: toMessage(row) }
    } catch (error) {
      if (!(error instanceof WbError)) throw error
      const failure = this.#metadata({
        finishReason: 'error',
        error: `the answer could not be stored: ${error.message}`,
      })
      const row = transcript.createAnswerRow(content, { ...fields, metadata: failure })
      yield { event: 'error', data: toMessage(row) }
    }
  }

  /**
   * Returns the sentences of the answer that its passages do not support: those that it cites, or if it cites none, those
   * that the turn has found. Returns undefined if they cannot be determined: because the answer cites a passage of an
   * earlier turn, or because a tool has returned other text.
   */
  async #findUnsupported(content: string): Promise<readonly SentenceRange[] | undefined> {
    const { answerCheck, agent, bases, citations, question, signal } = this.#options
    if (!answerCheck || this.#hasOtherText) return undefined
    const { citedPassages } = this.#reader
    const passages = citedPassages.length > 0 ? citedPassages : this.#tally.passages
    const isOff = ({ knowledgeBaseId }: ToolPassage) =>
      bases.some(base => base.knowledgeBaseId === knowledgeBaseId && base.semantic === false)
    const texts = passages.map(passage => citations.textOf(passage))
    if (passages.some(isOff) || !texts.every(text => text !== undefined)) return undefined
    const titles = passages.flatMap(({ title, sourceFilename }) => [title, sourceFilename])
    const context = [question, agent.systemPrompt, ...titles, ...this.#factResults].filter(Boolean).join('\n')
    const { workspaceId } = agent
    return answerCheck.unsupportedSentences(content, { passages: texts, context }, { workspaceId, signal })
  }

  /** Stores the partial answer, marked as interrupted. */
  async #interrupt(): Promise<void> {
    this.#isFinished = true
    this.#options.onEnd('interrupted')
    const text = this.#text + this.#reader.end()
    const metadata = this.#metadata({ finishReason: 'stop', isInterrupted: true })
    try {
      this.#partialAnswer = toMessage(
        await this.#options.transcript.storeFailedAnswer(text, {
          tokenCount: null,
          metadata,
          ...this.#sources.toField(),
        }),
      )
    } catch (error) {
      // The conversation was deleted.
      if (!(error instanceof WbError)) throw error
    }
  }

  /** Returns the failure reason to show to users. */
  #reasonOf(error: unknown): string {
    if (error instanceof TurnLimitReached || error instanceof SourcesHidden) return error.message
    if (error instanceof WbError) return [error.message, error.hint].filter(Boolean).join('. ')
    this.#options.reportFailure(error)
    if (error instanceof ProviderFailure)
      return [`The model did not answer: ${error.message}.`, error.facts.hint].filter(Boolean).join(' ')
    return 'The runtime failed. See its log for the reason.'
  }

  #metadata(
    ending: Pick<TurnEnding, 'finishReason' | 'error' | 'isInterrupted' | 'unsupported'>,
  ): Record<string, string> {
    const { citedPassages: citations, removedCount: citationsDropped } = this.#reader
    this.#reasoning.pause()
    const { text: reasoning, ms: reasoningMs } = this.#reasoning
    return answerMetadata(this.#tally, {
      ...ending,
      reasoning,
      reasoningMs,
      model: this.#options.model.model,
      contextWindow: this.#options.model.contextTokens,
      citations,
      citationsDropped,
      toolsLeftOut: this.#options.turnTools.omittedCount,
      signInServers: this.#options.signInServers,
    })
  }
}

class TurnLimitReached extends Error {
  override readonly name = 'TurnLimitReached'

  constructor(rounds: number) {
    super(
      rounds === roundsMax
        ? `The turn limit of ${roundsMax} model calls was reached without an answer.`
        : 'The model repeated the same tool call instead of answering. Ask again, or use another model.',
    )
  }
}

class SourcesHidden extends Error {
  override readonly name = 'SourcesHidden'

  constructor() {
    super('A document that this answer uses was deleted, or you may no longer see it. Ask again.')
  }
}

/** Requests an unstreamed answer. Yields its reasoning as one part, and its text as another. */
async function* completeAsStream(
  { chat }: AnsweringModel,
  ...request: Parameters<AnsweringModel['chat']['complete']>
): AsyncGenerator<AnswerPart, Completion, undefined> {
  const completion = await chat.complete(...request)
  if (completion.reasoning !== '') yield { kind: 'reasoning', delta: completion.reasoning }
  yield { kind: 'text', delta: completion.text }
  return completion
}
