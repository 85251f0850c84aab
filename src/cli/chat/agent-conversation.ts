import { systemClock } from '../../base/clock.ts'
import { type Client, collect } from '../../client/client.ts'
import { type Agent, agents } from '../../contract/agents.ts'
import { type Attachment, attachments } from '../../contract/attachments.ts'
import { type Approval, type Citation, chat, type MessagePair, type TurnEvent } from '../../contract/chat.ts'
import { type Conversation, conversations, type Message, messages } from '../../contract/conversations.ts'
import { documents } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import { llmServices } from '../../contract/services.ts'
import { readDocumentChunks } from '../documents/chunks.ts'
import { documentName } from '../fields/resources.ts'
import { conversationName } from '../find/conversation.ts'
import { listKnowledgeBases } from '../find/resolve.ts'
import { findPassages, type Passage } from '../passages/find-passages.ts'
import { formatAgo } from '../terminal/duration.ts'
import { plain, plainLine } from '../terminal/terminal-text.ts'
import { conversationMarkdown } from './conversation-markdown.ts'
import { type ChatPort, type ChoiceItem, type OutgoingMessage, usedPassagesMax } from './port.ts'
import { usedChunks } from './used-chunks.ts'

const passagesFoundMax = 5

type ConversationParams = Record<'workspaceId' | 'agentId' | 'conversationId', string>

/** A conversation with an agent of a runtime. The runtime creates it with the first message. */
export class AgentConversation implements ChatPort {
  #conversation: Conversation | undefined
  #conversationId: string | undefined
  /** No question was accepted since this object created the conversation. */
  #isUnused = false
  /** Knowledge bases for a conversation that is not created yet. */
  #knowledgeBaseIds: readonly string[] | undefined
  /** True if the last turn continues when its connection closes. */
  #isDetached = false

  constructor(
    private readonly client: Client,
    private readonly agent: Agent,
    private readonly signal: AbortSignal,
  ) {}

  get conversationId(): string | undefined {
    return this.#conversationId
  }

  /** Sends a message whose turn continues if the connection breaks, as far as the runtime allows more of them. */
  async *send(message: OutgoingMessage, signal: AbortSignal): AsyncGenerator<TurnEvent> {
    this.#isDetached = true
    try {
      yield* this.#stream({ ...message, approvals: true, detached: true }, signal)
    } catch (error) {
      if (!(error instanceof WbError && error.code === 'rate_limited')) throw error
      this.#isDetached = false
      yield* this.#stream({ ...message, approvals: true }, signal)
    }
  }

  async *attach(signal: AbortSignal): AsyncGenerator<TurnEvent> {
    const params = { ...this.#agentParams, conversationId: this.#conversationId ?? '' }
    for await (const { event, data } of this.client.events(chat.attach, { params }, { signal })) {
      this.#isDetached = true
      yield { event, data } as TurnEvent
    }
  }

  async stop(): Promise<void> {
    if (!this.#isDetached) return
    const params = { ...this.#agentParams, conversationId: this.#conversationId ?? '' }
    await this.client.call(chat.stop, { params }).catch(error => {
      // The turn has ended meanwhile.
      if (!(error instanceof WbError && error.code === 'not_found')) throw error
    })
  }

  /** Sends a message whose turn ends with the connection; the sender can approve tool calls. */
  sendWithApprovals(message: OutgoingMessage, signal: AbortSignal): AsyncGenerator<TurnEvent> {
    return this.#stream({ ...message, approvals: true }, signal)
  }

  /** Like {@link sendWithApprovals}, but tools that need an approval are denied. */
  sendWithoutApprovals(message: OutgoingMessage, signal: AbortSignal): AsyncGenerator<TurnEvent> {
    return this.#stream(message, signal)
  }

  async sendAndWait(message: OutgoingMessage): Promise<MessagePair> {
    const pair = await this.#inConversation(params =>
      this.client.call(chat.send, { params, body: requestBody(message) }),
    )
    this.#isUnused = false
    return pair
  }

  /**
   * Attaches files to the conversation, in order.
   *
   * @throws WbError  the runtime refuses one; a conversation that would begin with it does not begin
   */
  async attachFiles(files: readonly File[]): Promise<void> {
    await this.#inConversation(async params => {
      for (const file of files) await this.#upload(params, file, this.signal)
    })
  }

  /** Like {@link attachFiles}, but the conversation stays even if its first question is refused. */
  async attachFile(file: File, signal: AbortSignal): Promise<Attachment> {
    const either = AbortSignal.any([this.signal, signal])
    const attachment = await this.#inConversation(params => this.#upload(params, file, either))
    this.#isUnused = false
    return attachment
  }

  async attachments(): Promise<readonly Attachment[]> {
    const conversationId = this.#conversationId
    if (conversationId === undefined) return []
    const params = { ...this.#agentParams, conversationId }
    const all = { limit: limits.attachmentsPerConversation }
    return (await this.client.call(attachments.list, { params, query: all })).items
  }

  #upload(params: ConversationParams, file: File, signal: AbortSignal): Promise<Attachment> {
    const body = new FormData()
    body.set('file', file)
    return this.client.call(attachments.create, { params, body }, { signal })
  }

  async decide(approvalId: string, decision: Approval['decision']): Promise<void> {
    const params = { ...this.#agentParams, conversationId: this.#conversationId ?? '', approvalId }
    await this.client.call(chat.decide, { params, body: { decision } })
  }

  async messages(): Promise<Message[]> {
    const conversationId = this.#conversationId
    if (conversationId === undefined) {
      await this.client.call(agents.show, { params: this.#agentParams })
      return []
    }
    const params = { ...this.#agentParams, conversationId }
    return collect(this.client.items(messages.list, { params }))
  }

  async exportMarkdown(): Promise<string | undefined> {
    const messages = await this.messages()
    // The runtime derives the title from the first question.
    this.#conversation = undefined
    const conversation = await this.#load()
    if (!conversation || messages.length === 0) return undefined
    const params = { ...this.#agentParams, conversationId: conversation.conversationId }
    const attached = await this.client.call(attachments.list, {
      params,
      query: { limit: limits.attachmentsPerConversation },
    })
    return plain(conversationMarkdown(conversation, this.agent.name, messages, attached.items))
  }

  async findPassages(question: string): Promise<Passage[]> {
    const { workspaceId } = this.agent
    const ids = await this.#idsInUse()
    const knowledgeBaseIds = ids.length === 0 ? undefined : [...ids]
    return findPassages(
      {
        client: this.client,
        base: { workspaceId },
        signal: this.signal,
        body: { text: question.slice(0, limits.searchTextChars), knowledgeBaseIds },
      },
      passagesFoundMax,
    )
  }

  async citedPassage({ knowledgeBaseId, attachmentId, documentId, chunkId, chunkIndex }: Citation) {
    const { workspaceId } = this.agent
    if (attachmentId !== null) return this.#attachedPassage(attachmentId, chunkIndex ?? 0)
    if (documentId === null || knowledgeBaseId === null) return { text: '', around: ['', ''] as const }
    const params = { workspaceId, knowledgeBaseId, documentId }
    const document = await this.client.call(documents.show, { params })
    let before = ''
    let text: string | undefined
    for await (const chunk of readDocumentChunks(this.client, document)) {
      const messages = chunk.text ?? ''
      if (text !== undefined) return { text, around: [before, messages] as const }
      if (chunk.id === chunkId) text = messages
      else before = messages
    }
    return { text: text ?? '', around: [text === undefined ? '' : before, ''] as const }
  }

  async usedPassages(answer: Message): Promise<Citation[]> {
    const chunks = usedChunks(answer).slice(0, usedPassagesMax)
    const found = await Promise.all(
      chunks.map(async ({ chunkId, knowledgeBaseId, documentId }): Promise<Citation[]> => {
        const params = { workspaceId: this.agent.workspaceId, knowledgeBaseId, documentId }
        const document = await this.client.call(documents.show, { params }).catch(error => {
          if (error instanceof WbError && error.code === 'document_not_found') return undefined
          throw error
        })
        if (!document) return []
        const title = documentName(document)
        const { sourceFilename } = document
        const place = { attachmentId: null, chunkIndex: null, page: null }
        return [{ number: 1, chunkId, knowledgeBaseId, documentId, title, sourceFilename, ...place }]
      }),
    )
    return found.flat().map((citation, at) => ({ ...citation, number: at + 1 }))
  }

  async documentTitles(max: number): Promise<string[]> {
    const { workspaceId } = this.agent
    const inUse = await this.#idsInUse()
    const ids = inUse.length > 0 ? inUse : (await this.knowledgeBases()).map(({ id }) => id)
    const pages = await Promise.all(
      ids.slice(0, max).map(knowledgeBaseId =>
        this.client.call(documents.list, {
          params: { workspaceId, knowledgeBaseId },
          query: { limit: max },
        }),
      ),
    )
    const titles = pages.map(({ items }) => items.map(documentName))
    const inTurn = Array.from({ length: max }, (_, at) => titles.flatMap(names => names[at] ?? [])).flat()
    return [...new Set(inTurn)].slice(0, max)
  }

  async #attachedPassage(attachmentId: string, index: number) {
    const params = { ...this.#agentParams, conversationId: this.#conversationId ?? '', attachmentId }
    const { text, chunkEnds } = await this.client.call(attachments.show, { params })
    const end = (at: number) => (at < 0 ? 0 : (chunkEnds[at] ?? text.length))
    const chunk = (at: number) => text.slice(end(at - 1), end(at))
    return { text: chunk(index), around: [chunk(index - 1), chunk(index + 1)] as const }
  }

  async tools() {
    const { workspaceId, toolIds } = this.agent
    const { items } = await this.client.call(agents.tools, { params: { workspaceId } })
    return items.filter(({ id, source }) =>
      toolIds.length === 0 ? source === 'builtin' : toolIds.includes(id),
    )
  }

  async models(): Promise<ChoiceItem[]> {
    const { workspaceId, llmServiceId: bound } = this.agent
    const all = await collect(this.client.items(llmServices.list, { params: { workspaceId } }))
    return all.map(({ llmServiceId: id, name, provider, modelName }) => ({
      id,
      name: modelName,
      alias: name,
      description: `${name}, ${provider}${id === bound ? ", the agent's own" : ''}`,
      isChosen: id === bound,
    }))
  }

  async knowledgeBases(): Promise<ChoiceItem[]> {
    const { workspaceId } = this.agent
    const chosen = await this.#idsInUse()
    const all = await listKnowledgeBases(this.client, workspaceId)
    return all.map(({ knowledgeBaseId: id, name, description }) => ({
      id,
      name,
      description: description ?? '',
      isChosen: chosen.length === 0 || chosen.includes(id),
    }))
  }

  async knowledgeBasesInUse(): Promise<string[]> {
    const chosen = await this.#idsInUse()
    if (chosen.length === 0) return []
    const all = await listKnowledgeBases(this.client, this.agent.workspaceId)
    return all.flatMap(({ knowledgeBaseId, name }) => (chosen.includes(knowledgeBaseId) ? [name] : []))
  }

  async useKnowledgeBases(chosen: readonly string[]): Promise<void> {
    const ids = chosen.length === 0 ? await this.#allIds() : chosen
    this.#knowledgeBaseIds = ids
    const conversationId = this.#conversationId
    if (conversationId === undefined) return
    const params = { ...this.#agentParams, conversationId }
    this.#conversation = await this.client.call(conversations.update, {
      params,
      body: { knowledgeBaseIds: [...ids] },
    })
  }

  /** Returns the IDs that mean the whole workspace: none, or all IDs if the agent has its own knowledge bases. */
  async #allIds(): Promise<string[]> {
    if (this.agent.knowledgeBaseIds.length === 0) return []
    return (await this.knowledgeBases()).map(({ id }) => id)
  }

  async conversations(search: string): Promise<ChoiceItem[]> {
    const found = { sort: 'activity' as const, ...(search !== '' && { q: search }) }
    const items = this.client.items(conversations.list, { params: this.#agentParams, query: found })
    return (await collect(items)).map(one => ({
      id: one.conversationId,
      name: conversationName(one),
      description: formatAgo(Date.parse(one.lastActivityAt), systemClock.now()),
      isChosen: one.conversationId === this.#conversationId,
    }))
  }

  async versions(messageId: string): Promise<ChoiceItem[]> {
    const params = { ...this.#agentParams, conversationId: this.#conversationId ?? '', messageId }
    const { items } = await this.client.call(messages.versions, { params })
    return items.map(({ message, answer, isCurrent }, at) => ({
      id: message.messageId,
      name: `${at + 1} of ${items.length}`,
      description: plainLine(`${message.content} → ${answer?.content ?? 'no answer'}`),
      isChosen: isCurrent,
    }))
  }

  async useVersion(messageId: string): Promise<void> {
    const params = { ...this.#agentParams, conversationId: this.#conversationId ?? '', messageId }
    await this.client.call(messages.select, { params })
  }

  async rename(title: string): Promise<void> {
    const params = { ...this.#agentParams, conversationId: this.#conversationId ?? '' }
    this.#conversation = await this.client.call(conversations.update, { params, body: { title } })
  }

  switchConversation(conversationId: string | undefined): void {
    this.#conversationId = conversationId
    this.#conversation = undefined
    this.#isUnused = false
    if (conversationId !== undefined) this.#knowledgeBaseIds = undefined
  }

  /** Returns the newest conversation with this agent; undefined without one. */
  async newestConversation(): Promise<Conversation | undefined> {
    const page = { params: this.#agentParams, query: { limit: 1 } }
    return (await this.client.call(conversations.list, page)).items[0]
  }

  get #agentParams() {
    const { workspaceId, agentId } = this.agent
    return { workspaceId, agentId }
  }

  /** IDs of the knowledge bases of the conversation, or else of the agent; empty for the whole workspace. */
  async #idsInUse(): Promise<readonly string[]> {
    const conversation = await this.#load()
    const own = conversation?.knowledgeBaseIds ?? this.#knowledgeBaseIds ?? []
    return own.length > 0 ? own : this.agent.knowledgeBaseIds
  }

  async #load(): Promise<Conversation | undefined> {
    const conversationId = this.#conversationId
    if (conversationId === undefined) return undefined
    const params = { ...this.#agentParams, conversationId }
    this.#conversation ??= await this.client.call(conversations.show, { params })
    return this.#conversation
  }

  async *#stream(
    message: OutgoingMessage & { approvals?: boolean; detached?: boolean },
    signal: AbortSignal,
  ): AsyncGenerator<TurnEvent> {
    const body = requestBody(message)
    const events = await this.#inConversation(async params => {
      const stream = this.client.events(chat.stream, { params, body }, { signal })
      return { first: await stream.next(), rest: stream }
    })
    const { first, rest } = events
    try {
      if (first.done) return
      const { event, data } = first.value
      if (event === 'stream-error' && this.#isUnused) await this.#discard()
      else this.#isUnused = false
      yield { event, data } as TurnEvent
      for await (const { event, data } of rest) yield { event, data } as TurnEvent
    } finally {
      // Also where the reader leaves at the first event: an open stream keeps the process alive.
      await rest.return(undefined)
    }
  }

  /** Sends a message in the conversation. A new conversation is deleted if its first message is refused. */
  async #inConversation<T>(send: (params: ConversationParams) => Promise<T>): Promise<T> {
    const conversationId = this.#conversationId ?? (await this.#create())
    try {
      return await send({ ...this.#agentParams, conversationId })
    } catch (error) {
      if (this.#isUnused && error instanceof WbError) await this.#discard()
      throw error
    }
  }

  async #create(): Promise<string> {
    const body = { knowledgeBaseIds: [...(this.#knowledgeBaseIds ?? [])] }
    this.#conversation = await this.client.call(conversations.create, { params: this.#agentParams, body })
    this.#conversationId = this.#conversation.conversationId
    this.#isUnused = true
    return this.#conversationId
  }

  async #discard(): Promise<void> {
    const conversationId = this.#conversationId
    this.switchConversation(undefined)
    if (conversationId === undefined) return
    await this.client.call(conversations.delete, { params: { ...this.#agentParams, conversationId } })
  }
}

/** Returns what is sent of a message: its images without their names. */
function requestBody<S extends OutgoingMessage>({ images = [], ...message }: S) {
  const sent = images.map(({ mediaType, data }) => ({ mediaType, data }))
  return { ...message, ...(sent.length > 0 && { images: sent }) }
}
