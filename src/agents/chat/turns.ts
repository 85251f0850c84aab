import type { Caller } from '../../access/caller.ts'
import type { AuthContext } from '../../access/subject.ts'
import type { Clock } from '../../base/clock.ts'
import { KeyedQueue } from '../../base/keyed-queue.ts'
import type { Log } from '../../base/log.ts'
import type { Agent } from '../../contract/agents.ts'
import type { Approval, MessagePair, MessageSend } from '../../contract/chat.ts'
import type { Message } from '../../contract/conversations.ts'
import type { ServerEvent } from '../../contract/route.ts'
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
import { AgentTurn, type TurnOutcome } from './agent-turn.ts'
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
  type RetrievePassages,
  retrieveGrounding,
} from './grounding.ts'
import { type History, openHistory } from './history.ts'
import {
  drainingError,
  ignoreProviderFailure,
  messagePairOf,
  type OpenedTurn,
  requireModelError,
  turnEventsOf,
  untilCallerLeaves,
} from './opened-turn.ts'
import { type PastImages, requireImageSupport, totalBytes } from './past-images.ts'
import { attachmentTokensFor, historyTokensFor, passageTokensFor } from './request-budget.ts'
import { lastQuery, searchQuery } from './search-query.ts'
import { type NamedBase, QuoteMarks, summaryPrompt, systemPrompt } from './system-prompt.ts'
import { Transcript } from './transcript.ts'
import { TurnStream } from './turn-stream.ts'
import { TurnTools, type TurnToolsParts } from './turn-tools.ts'

export interface TurnsParts {
  readonly rows: RowStore
  readonly clock: Clock
  readonly log: Log
  readonly models: ChatModelSource
  readonly conversations: Pick<Conversations, 'get'>
  readonly attachments: Pick<AttachmentReader, 'read'>
  readonly pastImages: Pick<PastImages, 'add'>
  /** System prompt of agents that have none; null for the built-in default. */
  readonly systemPrompt: string | null
  readonly gate: ToolGate
  readonly toolsOf: (agent: Agent, auth: AuthContext, signal: AbortSignal) => Promise<ToolOffer>
  /** Returns the knowledge bases with the given IDs; all of the workspace if no ID is given. */
  readonly basesOf: (workspaceId: string, ids: readonly string[]) => Promise<readonly NamedBase[]>
  readonly retrieve: RetrievePassages
  /** Maximum passages of one knowledge base in the prompt of a model without tools. */
  readonly passagesPerBase: number
  readonly compactions: Pick<Compactions, 'begin' | 'interrupt'>
  /** Called after each turn, for the metrics. */
  readonly onTurnEnd: (provider: string, outcome: TurnOutcome) => void
  /** Set if the request contains the conversation. */
  readonly carried?: CarriedContext
}

/** Context of a conversation in a request, other than its messages. */
export interface CarriedContext {
  /** Instructions that the sender adds to the prompt of the agent. */
  readonly instructions: string | null
  /** True if earlier answers may contain text of documents or tools. */
  readonly hasRead: boolean
}

/** Caller of a turn. */
type TurnCaller = Pick<Caller, 'auth' | 'visibility' | 'signal' | 'requestId'>

/** Agent, conversation, model and limits of a turn. */
interface TurnSetting {
  readonly agent: Agent
  readonly conversation: ConversationRow
  readonly caller: TurnCaller
  readonly citations: Citations
  readonly marks: QuoteMarks
  readonly bases: readonly NamedBase[]
  readonly attached: readonly AttachmentIndex[]
  readonly model: AnsweringModel
  /** Maximum tokens of the passages of one search. */
  readonly passageTokens: number
  readonly signal: AbortSignal
}

const nothingInBases = 'Nothing was found in the knowledge bases for the question.'

/** Parts of the prompt about attachments and search results. */
interface PromptContext {
  readonly attached: AttachedPrompt
  readonly grounding: Grounding
}

/** The question, and the conditions for running tools. */
type TurnTerms = Pick<TurnToolsParts, 'canApprove' | 'hasRead' | 'question'>

interface TurnRequest {
  readonly place: ConversationKey
  readonly body: MessageSend
  readonly caller: TurnCaller
  readonly isWhole: boolean
  /** True to put passages into the prompt, and to send no tools. */
  readonly usesRetrieval?: boolean
}

/** An answer, and the chunks that were in its prompt. */
export interface AgentReply {
  readonly message: Message
  readonly contextChunkIds: readonly string[]
}

/** Questions to agents, and their answers. @see docs/agents.md */
export class Turns {
  readonly #parts: TurnsParts
  readonly #approvals: Approvals
  readonly #detached: DetachedTurns
  readonly #writes = new KeyedQueue()

  constructor(parts: TurnsParts) {
    this.#parts = parts
    this.#approvals = new Approvals(parts)
    this.#detached = new DetachedTurns(parts)
  }

  /**
   * Sends a message and waits for the answer. Tools that need an approval are denied. When the runtime drains, the
   * answer is partial.
   *
   * @throws workspace_not_found, conversation_not_found, agent_not_found, chat_message_not_found
   * @throws chat_disabled, llm_service_not_found, llm_provider_unsupported, llm_credential_missing
   * @throws llm_model_not_chat, llm_model_unavailable, llm_model_no_images
   */
  async send(place: ConversationKey, body: MessageSend, caller: Caller): Promise<MessagePair> {
    return this.#sendUnstreamed({ place, body: { ...body, approvals: false }, caller })
  }

  /**
   * Sends a message and returns an answer from retrieved passages. No tool is called.
   *
   * @throws what `send` throws, and what a search throws
   * @throws draining  the turn was cancelled; the question is stored
   * @see docs/mcp.md#the-tools
   */
  async reply(place: ConversationKey, content: string, caller: Caller): Promise<AgentReply> {
    const { assistant } = await this.#sendUnstreamed({
      place,
      body: { content, approvals: false, detached: false },
      caller,
      usesRetrieval: true,
    })
    if (assistant.metadata.interrupted) throw drainingError()
    const ids = assistant.metadata.context_document_ids ?? ''
    return { message: assistant, contextChunkIds: ids.split(',').filter(Boolean) }
  }

  /**
   * Sends a message and streams the answer. Unless it is detached, the turn ends when its reader leaves.
   *
   * @throws the errors of `send`; those of the model become a `stream-error` event
   * @throws rate_limited  too many detached turns are running
   */
  async stream(
    place: ConversationKey,
    body: MessageSend,
    caller: Caller,
  ): Promise<AsyncIterable<ServerEvent>> {
    const cancel = new AbortController()
    const { signal } = cancel
    if (!body.detached) {
      const opened = await this.#open({ place, body, caller, isWhole: false }, signal).catch(
        requireModelError,
      )
      return new TurnStream(turnEventsOf(opened), caller.signal, cancel)
    }
    const { auth, visibility, requestId } = caller
    const request = { place, body, caller: { auth, visibility, requestId, signal }, isWhole: false }
    const open = async () => turnEventsOf(await this.#open(request, signal).catch(requireModelError))
    return this.#detached.start({
      place,
      sender: caller,
      imageBytes: totalBytes(body.images ?? []),
      leave: cancel,
      open,
    })
  }

  /**
   * Reads the last turn that the caller detached in a conversation, from its first event on.
   *
   * @throws workspace_not_found, conversation_not_found, not_found
   */
  async attach(place: ConversationKey, auth: AuthContext): Promise<AsyncIterable<ServerEvent>> {
    await this.#parts.conversations.get(place, auth)
    return this.#detached.read(place, auth)
  }

  /**
   * Stops the last turn that the caller detached in a conversation.
   *
   * @throws workspace_not_found, conversation_not_found, not_found
   */
  async stop(place: ConversationKey, auth: AuthContext): Promise<void> {
    await this.#parts.conversations.get(place, auth)
    await this.#detached.stop(place, auth)
  }

  /** Stops all detached turns, and waits until their partial answers are stored. */
  close(): Promise<void> {
    return this.#detached.close()
  }

  /** @throws workspace_not_found, conversation_not_found, not_found */
  async decide(
    place: ConversationKey & { approvalId: string },
    { decision }: Approval,
    caller: Caller,
  ): Promise<Approval & { approvalId: string }> {
    await this.#parts.conversations.get(place, caller.auth)
    await this.#approvals.decide(place, decision, caller)
    return { approvalId: place.approvalId, decision }
  }

  #sendUnstreamed(request: Omit<TurnRequest, 'isWhole'> & { readonly caller: Caller }): Promise<MessagePair> {
    return untilCallerLeaves(request.caller, async signal =>
      messagePairOf(await this.#open({ ...request, isWhole: true }, signal), signal),
    )
  }

  async #open(request: TurnRequest, signal: AbortSignal): Promise<OpenedTurn> {
    const { place, body, caller, isWhole } = request
    const marks = new QuoteMarks()
    const { images = [] } = body
    const { past, replaced, ...inputs } = await this.#readInputs(request)
    const modelAndTools = await this.#openModelAndTools({ ...inputs, caller }, body.llmServiceId, signal)
    const { model, bases, attached } = modelAndTools
    const { tools, signInTo } = modelAndTools.offer
    requireImageSupport(model, images)
    // A local model usually answers one request at a time.
    if (model.provider === 'ollama') this.#parts.compactions.interrupt(place)
    const isGrounded = request.usesRetrieval || model.supportsTools === false
    const hasTools = !isGrounded && tools.length > 0
    const promptTokens = model.contextTokens - model.maxTokens
    const tokens = historyTokensFor(promptTokens, hasTools)
    const history = await past.read({ tokens, marks, replaced: replaced?.rows ?? [] })
    const { rows, pastImages } = this.#parts
    const setting = {
      ...inputs,
      caller,
      citations: new Citations(history.citations),
      signal,
      marks,
      bases,
      attached,
      model,
      passageTokens: passageTokensFor(model),
    }
    const terms = {
      canApprove: body.approvals,
      hasRead:
        hasReadBefore(inputs.conversation, replaced) ||
        this.#parts.carried?.hasRead === true ||
        attached.length > 0,
      question: body.content,
    }
    const turn = new AgentTurn({
      ...this.#parts,
      ...setting,
      ...(isGrounded
        ? await this.#prepareWithRetrieval(setting, terms, history)
        : await this.#prepareWithTools(setting, terms, history, tools)),
      withoutTools: () => this.#prepareWithRetrieval(setting, terms, history),
      sampling: {
        ...model.sampling,
        ...toSamplingSettings(inputs.agent),
        ...(body.temperature !== undefined && { temperature: body.temperature }),
      },
      transcript: new Transcript({ ...this.#parts, writes: this.#writes }, place, {
        lastAt: history.lastAt,
        questionId: replaced?.questionId,
      }),
      history,
      question: body.content,
      images,
      withPastImages: async () =>
        model.supportsImages === false
          ? { history, release() {} }
          : pastImages.add(history, images, { rows, place, promptTokens }),
      signInTo: signInTo.map(({ label }) => label),
      isWhole,
      onEnd: outcome => {
        this.#parts.onTurnEnd(model.provider, outcome)
        if (outcome === 'ok') this.#parts.compactions.begin({ ...place, model, hasTools })
      },
      reportFailure: error => this.#reportFailure(place, caller, error),
    })
    return { turn, check: () => model.chat.check().catch(ignoreProviderFailure) }
  }

  /** Reads the inputs of a turn concurrently, because each read is a round trip to the store. */
  async #readInputs({ place, body, caller }: TurnRequest) {
    const { rows, conversations } = this.#parts
    // A caller that cannot see the conversation must learn nothing about its messages.
    if (body.replaces !== undefined) await conversations.get(place, caller.auth)
    const replaced =
      body.replaces === undefined ? undefined : await readReplacedVersion(rows, place, body.replaces)
    const [conversation, agent, past] = await Promise.all([
      conversations.get(place, caller.auth),
      rows.get(tables.agents, [place.workspaceId, place.agentId]),
      openHistory(rows, place),
    ])
    if (!agent) throw agentNotFound(place.agentId)
    return { conversation, agent: agent.row, past, replaced }
  }

  /** Opens the model of a turn and its tools. */
  async #openModelAndTools(
    { agent, conversation, caller }: Pick<TurnSetting, 'agent' | 'conversation' | 'caller'>,
    llmServiceId: MessageSend['llmServiceId'],
    signal: AbortSignal,
  ) {
    const { workspaceId } = agent
    const [model, bases, offer, attached] = await Promise.all([
      openAnsweringModel(this.#parts, workspaceId, llmServiceId ?? agent.llmServiceId),
      this.#parts.basesOf(workspaceId, knowledgeBasesFor(conversation, agent)),
      this.#parts.toolsOf(agent, caller.auth, signal),
      this.#parts.attachments.read(conversation),
    ])
    return { model, bases, offer, attached }
  }

  /** Prepares a turn in which the model searches with tools. */
  async #prepareWithTools(setting: TurnSetting, terms: TurnTerms, history: History, tools: readonly Tool[]) {
    const { attached } = setting
    const offered =
      attached.length > 0 && tools.length > 0 ? [...tools, createAttachmentTool(attached)] : tools
    const turnTools = this.#turnTools(setting, offered, terms)
    const prompt = await this.#buildAttachedPrompt(setting, turnTools, terms.question, history)
    return this.#prepare(setting, turnTools, { attached: prompt, grounding: notSearchedGrounding }, history)
  }

  /** Prepares a turn with passages in the prompt and without tools. */
  async #prepareWithRetrieval(setting: TurnSetting, terms: TurnTerms, history: History) {
    const turnTools = this.#turnTools(setting, [], terms)
    const attached = await this.#buildAttachedPrompt(setting, turnTools, terms.question, history)
    const grounding = await this.#retrieve(setting, terms.question, history, attached)
    return this.#prepare(setting, turnTools, { attached, grounding }, history)
  }

  #prepare(setting: TurnSetting, turnTools: TurnTools, promptContext: PromptContext, history: History) {
    const { attached, grounding } = promptContext
    const system = this.#systemPrompt(setting, turnTools, promptContext, history.summary)
    const promptPassages = [...attached.found, ...grounding.found]
    const promptHasUntrustedText = attached.text !== '' || grounding.found.length > 0
    return { turnTools, system, promptPassages, promptHasUntrustedText, searchQuery: grounding.query }
  }

  #buildAttachedPrompt(
    setting: TurnSetting,
    { specs }: TurnTools,
    question: string,
    past: History,
  ): Promise<AttachedPrompt> {
    const { model, bases, attached, passageTokens } = setting
    const query = searchQuery(question, lastQuery(past.turns)) ?? ''
    const isShared = specs.length > 0 || bases.length > 0
    const promptTokens = model.contextTokens - model.maxTokens
    const usedTokens = estimateTokens(JSON.stringify(specs)) + estimateTokens(question)
    const tokens = attachmentTokensFor({ passageTokens, isShared, left: promptTokens - usedTokens })
    return buildAttachedPrompt(attached, { query, tokens, canRead: specs.length > 0 }, setting)
  }

  #turnTools(
    { agent, conversation, caller, citations, passageTokens }: TurnSetting,
    tools: readonly Tool[],
    terms: TurnTerms,
  ): TurnTools {
    const { workspaceId } = agent
    return new TurnTools({
      ...this.#parts,
      ...terms,
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
    { agent, bases, ...setting }: TurnSetting,
    question: string,
    past: History,
    attached: AttachedPrompt,
  ): Promise<Grounding> {
    const { retrieve, passagesPerBase } = this.#parts
    const { workspaceId } = agent
    const knowledgeBaseIds = bases.map(base => base.knowledgeBaseId)
    const passageTokens = setting.passageTokens - Math.ceil(attached.bytes / bytesPerToken)
    const query = searchQuery(question, lastQuery(past.turns))
    const grounding = await retrieveGrounding(
      { workspaceId, query, knowledgeBaseIds, passagesPerBase, passageTokens },
      { ...setting, retrieve },
    )
    const isFinal = attached.text === '' || query === undefined || grounding.found.length > 0
    return isFinal ? grounding : { ...grounding, text: bases.length > 0 ? nothingInBases : '' }
  }

  /** Returns the system prompt of a turn. */
  #systemPrompt(
    { agent, bases, marks }: TurnSetting,
    turnTools: TurnTools,
    { attached, grounding }: PromptContext,
    summary: History['summary'],
  ): string {
    const prompt = systemPrompt({
      agentPrompt: agent.systemPrompt,
      configuredPrompt: this.#parts.systemPrompt,
      added: this.#parts.carried?.instructions ?? null,
      search: grounding === notSearchedGrounding ? (turnTools.searches ? 'tool' : 'none') : 'prompt',
      cites: turnTools.cites || attached.text !== '' || grounding.found.length > 0,
      bases: turnTools.cites ? bases : [],
      marks,
    })
    const earlier = summary && summaryPrompt(summary.text, marks)
    return [prompt, earlier, attached.text, grounding.text].filter(Boolean).join('\n\n')
  }

  #reportFailure({ workspaceId, agentId }: ConversationKey, { requestId }: TurnCaller, error: unknown): void {
    const place = { requestId, workspaceId, agentId }
    if (error instanceof ProviderFailure) {
      const { kind, providerStatus } = error.facts
      this.#parts.log.warn({ ...place, kind, providerStatus }, error.message)
    } else this.#parts.log.error({ ...place, error }, 'a turn failed')
  }
}

/** Returns true if earlier messages derive from text of documents or tools, except the replaced ones. */
function hasReadBefore({ untrustedSince }: ConversationRow, replaced: CurrentVersion | undefined): boolean {
  return Boolean(untrustedSince && !(replaced && replaced.rows[0].messageTs <= untrustedSince))
}

/** Returns the knowledge bases of a conversation; those of its agent if it has none. */
function knowledgeBasesFor(conversation: ConversationRow, agent: Agent): readonly string[] {
  return conversation.knowledgeBaseIds.length > 0 ? conversation.knowledgeBaseIds : agent.knowledgeBaseIds
}
