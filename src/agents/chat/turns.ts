import type { Caller } from '../../access/caller.ts'
import { drainingError, runUntilCallerDisconnects } from '../../access/run-until-caller-disconnects.ts'
import type { AuthContext } from '../../access/subject.ts'
import type { Clock } from '../../base/clock.ts'
import { KeyedQueue } from '../../base/keyed-queue.ts'
import type { Log } from '../../base/log.ts'
import type { Agent } from '../../contract/agents.ts'
import type { Approval, MessagePair, MessageSend } from '../../contract/chat.ts'
import type { Message } from '../../contract/conversations.ts'
import { WbError } from '../../contract/errors.ts'
import type { ServerEvent } from '../../contract/route.ts'
import type { OpenPassageCheck } from '../../knowledge/passage-visibility.ts'
import { toSamplingSettings } from '../../models/chat/sampling.ts'
import { ProviderFailure } from '../../models/provider/provider-failure.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type ConversationRow, tables } from '../../storage/tables.ts'
import type { ConversationKey, Conversations } from '../conversations.ts'
import { bytesPerToken, estimateTokens } from '../estimate-tokens.ts'
import { agentNotFound } from '../not-found.ts'
import {
  type AttachmentIndex,
  type AttachmentReader,
  createAttachmentTool,
} from '../tools/attachment-reader.ts'
import type { ToolOffer } from '../tools/remote-tools.ts'
import type { Tool } from '../tools/tool.ts'
import type { ToolGate } from '../tools/tool-gate.ts'
import { AgentTurn, type TurnBase, type TurnOutcome } from './agent-turn.ts'
import type { AnswerCheck } from './answer-check.ts'
import { type AnsweringModel, type ChatModelSource, openAnsweringModel } from './answering-model.ts'
import { Approvals } from './approvals.ts'
import { type AttachedPrompt, buildAttachedPrompt } from './attached-prompt.ts'
import { Citations } from './citations.ts'
import type { Compactions } from './compactions.ts'
import { type CurrentVersion, readReplacedVersion } from './current-version.ts'
import { DetachedTurns } from './detached-turns.ts'
import {
  type Grounding,
  notSearchedGrounding,
  type RetrievalQuery,
  type RetrievePassages,
  retrieveGrounding,
} from './grounding.ts'
import { type History, openHistory } from './history.ts'
import {
  ignoreProviderFailure,
  messagePairOf,
  type OpenedTurn,
  requireModelError,
  turnEventsOf,
} from './opened-turn.ts'
import { type PastImages, requireImageSupport, totalBytes } from './past-images.ts'
import { attachmentTokensFor, historyTokensFor, passageTokensFor } from './request-budget.ts'
import { lastQuery, searchQuery } from './search-query.ts'
import { areSourcesVisible, type SourceSet } from './sources.ts'
import { DataTags, summaryPrompt, systemPrompt } from './system-prompt.ts'
import { Transcript } from './transcript.ts'
import { TurnStream } from './turn-stream.ts'
import { TurnTools, type TurnToolsOptions } from './turn-tools.ts'

export interface TurnsDependencies {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
  readonly models: ChatModelSource
  readonly conversations: Pick<Conversations, 'get'>
  readonly attachments: Pick<AttachmentReader, 'read'>
  readonly pastImages: Pick<PastImages, 'add'>
  /** System prompt for agents without a system prompt; null for the built-in default. */
  readonly systemPrompt: string | null
  readonly gate: ToolGate
  readonly findTools: (agent: Agent, auth: AuthContext, signal: AbortSignal) => Promise<ToolOffer>
  /** Returns the knowledge bases with the given IDs; all knowledge bases of the workspace if `ids` is empty. */
  readonly findBases: (workspaceId: string, ids: readonly string[]) => Promise<readonly TurnBase[]>
  readonly retrieve: RetrievePassages
  /** Number of passages in the prompt of a model without tools. See {@link RetrievalQuery.retrievalK}. */
  readonly retrievalK: number
  readonly compactions: Pick<Compactions, 'startIfNeeded' | 'interrupt'>
  /** Undefined to store answers without a check. */
  readonly answerCheck: Pick<AnswerCheck, 'unsupportedSentences'> | undefined
  readonly openPassageCheck: OpenPassageCheck
  /** Called after each turn, to record metrics. */
  readonly onTurnEnd: (provider: string, outcome: TurnOutcome) => void
  /** Set if the conversation is part of the request. */
  readonly requestContext?: RequestContext
}

/** Properties of a conversation that is part of the request, in addition to its messages. */
export interface RequestContext {
  /** Instructions that the sender adds to the agent's prompt; null if there are none. */
  readonly instructions: string | null
  /** True if earlier answers may contain text of documents or tools. */
  readonly hasReadUntrusted: boolean
}

/** Caller of a turn. */
type TurnCaller = Pick<Caller, 'auth' | 'client' | 'reauthorize' | 'rowAccess' | 'signal' | 'requestId'>

/** Agent, conversation, model and limits of a turn. */
interface TurnContext {
  readonly agent: Agent
  readonly conversation: ConversationRow
  readonly caller: TurnCaller
  readonly citations: Citations
  readonly dataTags: DataTags
  readonly bases: readonly TurnBase[]
  readonly attached: readonly AttachmentIndex[]
  readonly model: AnsweringModel
  /** Maximum tokens for the passages of one search. */
  readonly passageTokens: number
  readonly signal: AbortSignal
}

const nothingInBases = 'Nothing was found in the knowledge bases for the question.'

/** The parts of the prompt that contain attachments and search results. */
interface PromptContext {
  readonly attached: AttachedPrompt
  readonly grounding: Grounding
}

/** The question, and settings that affect permissions for tool calls. */
type TurnConditions = Pick<TurnToolsOptions, 'canApprove' | 'hasReadUntrusted' | 'question'>

interface TurnRequest {
  readonly conversationKey: ConversationKey
  readonly body: MessageSend
  readonly caller: TurnCaller
  /** True to request an unstreamed answer from the model. */
  readonly isUnstreamed: boolean
  /** True to send passages in the prompt instead of tools. */
  readonly usesRetrieval?: boolean
}

/** An answer, and the IDs of the chunks in its prompt. */
export interface AgentReply {
  readonly message: Message
  readonly contextChunkIds: readonly string[]
}

/** Sends questions to agents, and stores and returns the answers. @see docs/agents.md */
export class Turns {
  readonly #deps: TurnsDependencies
  readonly #approvals: Approvals
  readonly #detachedTurns: DetachedTurns
  readonly #writes = new KeyedQueue()

  constructor(deps: TurnsDependencies) {
    this.#deps = deps
    this.#approvals = new Approvals(deps)
    this.#detachedTurns = new DetachedTurns(deps)
  }

  /**
   * Sends a message and waits for the answer. Tool calls that need an approval are denied. If the runtime shuts down in
   * the meantime, the answer is partial.
   *
   * @throws workspace_not_found, conversation_not_found, agent_not_found, chat_message_not_found
   * @throws chat_disabled, llm_service_not_found, llm_provider_unsupported, llm_credential_missing
   * @throws llm_model_not_chat, llm_model_unavailable, llm_model_no_images
   */
  async send(conversationKey: ConversationKey, body: MessageSend, caller: Caller): Promise<MessagePair> {
    return this.#sendUnstreamed({ conversationKey, body: { ...body, approvals: false }, caller })
  }

  /**
   * Sends a message and returns an answer that is based on passages in the prompt, without tool calls.
   *
   * @throws the errors of `send` and of a search
   * @throws draining  the turn was cancelled; the question is stored
   * @see docs/mcp.md#the-tools
   */
  async reply(conversationKey: ConversationKey, content: string, caller: Caller): Promise<AgentReply> {
    const { assistant } = await this.#sendUnstreamed({
      conversationKey,
      body: { content, approvals: false, detached: false },
      caller,
      usesRetrieval: true,
    })
    if (assistant.metadata.interrupted) throw drainingError()
    const ids = assistant.metadata.context_document_ids ?? ''
    return { message: assistant, contextChunkIds: ids.split(',').filter(Boolean) }
  }

  /**
   * Sends a message and streams the answer. The turn stops when the reader disconnects, unless the turn is detached.
   *
   * @throws the errors of `send`, except errors of the model, which become a `stream-error` event
   * @throws rate_limited  too many detached turns are running
   */
  async stream(
    conversationKey: ConversationKey,
    body: MessageSend,
    caller: Caller,
  ): Promise<AsyncIterable<ServerEvent>> {
    const cancel = new AbortController()
    const { signal } = cancel
    if (!body.detached) {
      const opened = await this.#open({ conversationKey, body, caller, isUnstreamed: false }, signal).catch(
        requireModelError,
      )
      return new TurnStream(turnEventsOf(opened), caller.signal, cancel)
    }
    const { auth, client, requestId } = caller
    const rowAccess = (workspaceId: string) => caller.rowAccess(workspaceId)
    const reauthorize = () => caller.reauthorize()
    const request = {
      conversationKey,
      body,
      caller: { auth, client, reauthorize, rowAccess, requestId, signal },
      isUnstreamed: false,
    }
    let sources: SourceSet | undefined
    const open = async () => {
      const opened = await this.#open(request, signal).catch(requireModelError)
      if (!(opened instanceof WbError)) sources = opened.turn.sources
      return turnEventsOf(opened)
    }
    return this.#detachedTurns.start({
      conversationKey,
      sender: caller,
      isReadableBy: async reader =>
        sources === undefined || this.#areSourcesVisible(conversationKey.workspaceId, sources, reader),
      imageBytes: totalBytes(body.images ?? []),
      cancel,
      open,
    })
  }

  /**
   * Reads the last turn that the caller detached in a conversation, starting with its first event. A turn is treated as
   * missing if the caller may no longer see a document that it has read.
   *
   * @throws workspace_not_found, conversation_not_found, not_found
   */
  async attach(
    conversationKey: ConversationKey,
    caller: Pick<Caller, 'auth' | 'rowAccess'>,
  ): Promise<AsyncIterable<ServerEvent>> {
    await this.#deps.conversations.get(conversationKey, caller.auth)
    return this.#detachedTurns.read(conversationKey, caller)
  }

  /**
   * Stops the last turn that the caller detached in a conversation.
   *
   * @throws workspace_not_found, conversation_not_found, not_found
   */
  async stop(conversationKey: ConversationKey, auth: AuthContext): Promise<void> {
    await this.#deps.conversations.get(conversationKey, auth)
    await this.#detachedTurns.stop(conversationKey, auth)
  }

  /** Stops all detached turns, and waits until their partial answers are stored. */
  close(): Promise<void> {
    return this.#detachedTurns.close()
  }

  /** @throws workspace_not_found, conversation_not_found, not_found */
  async decide(
    approvalKey: ConversationKey & { approvalId: string },
    { decision }: Approval,
    caller: Caller,
  ): Promise<Approval & { approvalId: string }> {
    await this.#deps.conversations.get(approvalKey, caller.auth)
    await this.#approvals.decide(approvalKey, decision, caller)
    return { approvalId: approvalKey.approvalId, decision }
  }

  #sendUnstreamed(
    request: Omit<TurnRequest, 'isUnstreamed'> & { readonly caller: Caller },
  ): Promise<MessagePair> {
    return runUntilCallerDisconnects(request.caller, async signal => {
      const opened = await this.#open({ ...request, isUnstreamed: true }, signal)
      const pair = await messagePairOf(opened, signal)
      // An answer can take minutes. A revocation in the meantime must take effect.
      await request.caller.reauthorize()
      return pair
    })
  }

  async #open(request: TurnRequest, signal: AbortSignal): Promise<OpenedTurn> {
    const { conversationKey, body, caller, isUnstreamed } = request
    const dataTags = new DataTags()
    const { images = [] } = body
    const { historyReader, replaced, ...inputs } = await this.#readInputs(request)
    const modelAndTools = await this.#openModelAndTools({ ...inputs, caller }, body.llmServiceId, signal)
    const { model, bases, attached } = modelAndTools
    const { tools, signInServers } = modelAndTools.offer
    requireImageSupport(model, images)
    // A local model usually handles one request at a time, so a running summary would delay the answer.
    if (model.provider === 'ollama') this.#deps.compactions.interrupt(conversationKey)
    const usesRetrieval = request.usesRetrieval || model.supportsTools === false
    const hasTools = !usesRetrieval && tools.length > 0
    const promptTokens = model.contextTokens - model.maxTokens
    const tokens = historyTokensFor(promptTokens, hasTools)
    const { workspaceId } = conversationKey
    const check = await this.#deps.openPassageCheck(workspaceId, caller)
    const history = await historyReader.read({ tokens, dataTags, replaced: replaced?.rows ?? [], check })
    const { rows, pastImages } = this.#deps
    const turnContext = {
      ...inputs,
      caller,
      citations: new Citations(history.citations, history.lastCitation?.number),
      signal,
      dataTags,
      bases,
      attached,
      model,
      passageTokens: passageTokensFor(model),
    }
    const conditions = {
      canApprove: body.approvals,
      hasReadUntrusted:
        hasReadUntrustedBefore(inputs.conversation, replaced) ||
        this.#deps.requestContext?.hasReadUntrusted === true ||
        attached.length > 0,
      question: body.content,
    }
    const turn = new AgentTurn({
      ...this.#deps,
      ...turnContext,
      ...(usesRetrieval
        ? await this.#prepareWithRetrieval(turnContext, conditions, history)
        : await this.#prepareWithTools(turnContext, conditions, history, tools)),
      prepareWithoutTools: () => this.#prepareWithRetrieval(turnContext, conditions, history),
      sampling: {
        ...model.sampling,
        ...toSamplingSettings(inputs.agent),
        ...(body.temperature !== undefined && { temperature: body.temperature }),
      },
      transcript: new Transcript({ ...this.#deps, writes: this.#writes }, inputs.conversation, {
        lastAt: history.lastAt,
        questionId: replaced?.questionId,
      }),
      history,
      areSourcesVisible: sources => this.#areSourcesVisible(workspaceId, sources, caller),
      question: body.content,
      images,
      loadPastImages: async () =>
        model.supportsImages === false
          ? { history, release() {} }
          : pastImages.add(history, images, { rows, conversationKey, promptTokensMax: promptTokens }),
      signInServers: signInServers.map(({ label }) => label),
      isUnstreamed,
      onEnd: outcome => {
        this.#deps.onTurnEnd(model.provider, outcome)
        if (outcome === 'ok')
          this.#deps.compactions.startIfNeeded({ ...conversationKey, caller, model, hasTools })
      },
      reportFailure: error => this.#reportFailure(conversationKey, caller, error),
    })
    return { turn, check: () => model.chat.check().catch(ignoreProviderFailure) }
  }

  async #areSourcesVisible(
    workspaceId: string,
    { all }: SourceSet,
    caller: Pick<Caller, 'rowAccess'>,
  ): Promise<boolean> {
    return areSourcesVisible(all, await this.#deps.openPassageCheck(workspaceId, caller))
  }

  /** Reads the inputs of a turn concurrently, because each read is a round trip to the store. */
  async #readInputs({ conversationKey, body, caller }: TurnRequest) {
    const { rows, conversations } = this.#deps
    // This check comes first: errors about messages must not reach callers that cannot see the conversation.
    if (body.replaces !== undefined) await conversations.get(conversationKey, caller.auth)
    const replaced =
      body.replaces === undefined
        ? undefined
        : await readReplacedVersion(rows, conversationKey, body.replaces)
    const [conversation, agent, historyReader] = await Promise.all([
      conversations.get(conversationKey, caller.auth),
      rows.get(tables.agents, [conversationKey.workspaceId, conversationKey.agentId]),
      openHistory(rows, conversationKey),
    ])
    if (!agent) throw agentNotFound(conversationKey.agentId)
    return { conversation, agent: agent.row, historyReader, replaced }
  }

  /** Opens the model of a turn and its tools. */
  async #openModelAndTools(
    { agent, conversation, caller }: Pick<TurnContext, 'agent' | 'conversation' | 'caller'>,
    llmServiceId: MessageSend['llmServiceId'],
    signal: AbortSignal,
  ) {
    const { workspaceId } = agent
    const [model, bases, offer, attached] = await Promise.all([
      openAnsweringModel(this.#deps, workspaceId, llmServiceId ?? agent.llmServiceId),
      this.#deps.findBases(workspaceId, knowledgeBasesFor(conversation, agent)),
      this.#deps.findTools(agent, caller.auth, signal),
      this.#deps.attachments.read(conversation),
    ])
    return { model, bases, offer, attached }
  }

  /** Prepares a turn in which the model searches with tools. */
  async #prepareWithTools(
    turnContext: TurnContext,
    conditions: TurnConditions,
    history: History,
    tools: readonly Tool[],
  ) {
    const { attached } = turnContext
    const allTools =
      attached.length > 0 && tools.length > 0 ? [...tools, createAttachmentTool(attached)] : tools
    const turnTools = this.#turnTools(turnContext, allTools, conditions)
    const prompt = await this.#buildAttachedPrompt(turnContext, turnTools, conditions.question, history)
    return this.#prepare(
      turnContext,
      turnTools,
      { attached: prompt, grounding: notSearchedGrounding },
      history,
    )
  }

  /** Prepares a turn with passages in the prompt and without tools. */
  async #prepareWithRetrieval(turnContext: TurnContext, conditions: TurnConditions, history: History) {
    const turnTools = this.#turnTools(turnContext, [], conditions)
    const attached = await this.#buildAttachedPrompt(turnContext, turnTools, conditions.question, history)
    const grounding = await this.#retrieve(turnContext, conditions.question, history, attached)
    return this.#prepare(turnContext, turnTools, { attached, grounding }, history)
  }

  #prepare(turnContext: TurnContext, turnTools: TurnTools, promptContext: PromptContext, history: History) {
    const { attached, grounding } = promptContext
    const system = this.#systemPrompt(turnContext, turnTools, promptContext, history.summary)
    const promptPassages = [...attached.passages, ...grounding.passages]
    const promptHasUntrustedText = attached.text !== '' || grounding.passages.length > 0
    return { turnTools, system, promptPassages, promptHasUntrustedText, searchQuery: grounding.query }
  }

  #buildAttachedPrompt(
    turnContext: TurnContext,
    { specs }: TurnTools,
    question: string,
    history: History,
  ): Promise<AttachedPrompt> {
    const { model, bases, attached, passageTokens } = turnContext
    const query = searchQuery(question, lastQuery(history.turns)) ?? ''
    const isShared = specs.length > 0 || bases.length > 0
    const promptTokens = model.contextTokens - model.maxTokens
    const usedTokens = estimateTokens(JSON.stringify(specs)) + estimateTokens(question)
    const tokens = attachmentTokensFor({ passageTokens, isShared, leftTokens: promptTokens - usedTokens })
    return buildAttachedPrompt(attached, { query, tokens, canRead: specs.length > 0 }, turnContext)
  }

  #turnTools(
    { agent, conversation, caller, citations, passageTokens }: TurnContext,
    tools: readonly Tool[],
    conditions: TurnConditions,
  ): TurnTools {
    const { workspaceId } = agent
    return new TurnTools({
      ...this.#deps,
      ...conditions,
      approvals: this.#approvals,
      agent,
      conversation,
      citations,
      tools,
      context: {
        workspaceId,
        caller,
        knowledgeBaseIds: knowledgeBasesFor(conversation, agent),
        passageTokens,
      },
    })
  }

  async #retrieve(
    { agent, bases, ...turnContext }: TurnContext,
    question: string,
    history: History,
    attached: AttachedPrompt,
  ): Promise<Grounding> {
    const { retrieve, retrievalK } = this.#deps
    const { workspaceId } = agent
    const knowledgeBaseIds = bases.map(base => base.knowledgeBaseId)
    const passageTokens = turnContext.passageTokens - Math.ceil(attached.bytes / bytesPerToken)
    const query = searchQuery(question, lastQuery(history.turns))
    const grounding = await retrieveGrounding(
      { workspaceId, query, knowledgeBaseIds, retrievalK, passageTokens },
      { ...turnContext, retrieve },
    )
    const isEmpty = query !== undefined && grounding.passages.length === 0
    if (!isEmpty || attached.text === '') return grounding
    // The attachments can contain the answer, so the prompt must not say that nothing was found at all.
    return { ...grounding, text: bases.length > 0 ? nothingInBases : '' }
  }

  #systemPrompt(
    { agent, bases, dataTags }: TurnContext,
    turnTools: TurnTools,
    { attached, grounding }: PromptContext,
    summary: History['summary'],
  ): string {
    const prompt = systemPrompt({
      agentPrompt: agent.systemPrompt,
      configuredPrompt: this.#deps.systemPrompt,
      senderInstructions: this.#deps.requestContext?.instructions ?? null,
      search: grounding === notSearchedGrounding ? (turnTools.canSearch ? 'tool' : 'none') : 'prompt',
      hasCitations: turnTools.canCite || attached.text !== '' || grounding.passages.length > 0,
      bases: turnTools.canCite ? bases : [],
      dataTags,
    })
    const earlierSummary = summary && summaryPrompt(summary.text, dataTags)
    return [prompt, earlierSummary, attached.text, grounding.text].filter(Boolean).join('\n\n')
  }

  #reportFailure({ workspaceId, agentId }: ConversationKey, { requestId }: TurnCaller, error: unknown): void {
    const logFields = { requestId, workspaceId, agentId }
    if (error instanceof ProviderFailure) {
      const { kind, providerStatus } = error.facts
      this.#deps.log.warn({ ...logFields, kind, providerStatus }, error.message)
    } else this.#deps.log.error({ ...logFields, error }, 'a turn failed')
  }
}

/** Returns true if earlier messages can derive from text of documents or tools. Ignores messages that are replaced. */
function hasReadUntrustedBefore(
  { untrustedSince }: ConversationRow,
  replaced: CurrentVersion | undefined,
): boolean {
  return Boolean(untrustedSince && !(replaced && replaced.rows[0].messageTs <= untrustedSince))
}

/** Returns the knowledge bases of a conversation, or those of its agent if the conversation has none. */
function knowledgeBasesFor(conversation: ConversationRow, agent: Agent): readonly string[] {
  return conversation.knowledgeBaseIds.length > 0 ? conversation.knowledgeBaseIds : agent.knowledgeBaseIds
}
