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

const passagesMax = 5

type ConversationParams = Record<'workspaceId' | 'agentId' | 'conversationId', string>

/** A conversation with an agent. It is created in the runtime when the first message is sent. */
export class AgentConversation implements ChatPort {
  #conversation: Conversation | undefined
  #conversationId: string | undefined
  /**
   * True if this object created the conversation, and no question has been accepted yet. A rejected request then
   * deletes the conversation.
   */
  #isUnused = false
  /** IDs of the knowledge bases for a conversation that has not been created yet. */
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

  /** Sends a message. Its turn continues if the connection breaks, unless too many such turns are running already. */
  async *send(message: OutgoingMessage, signal: AbortSignal): AsyncGenerator<TurnEvent> {
    this.#isDetached = true
    try {
      yield* this.#streamTurn({ ...message, approvals: true, detached: true }, signal)
    } catch (error) {
      if (!(error instanceof WbError && error.code === 'rate_limited')) throw error
      this.#isDetached = false
      yield* this.#streamTurn({ ...message, approvals: true }, signal)
    }
  }

  async *readRunningTurn(signal: AbortSignal): AsyncGenerator<TurnEvent> {
    const params = this.#conversationParams
    for await (const { event, data } of this.client.events(chat.attach, { params }, { signal })) {
      this.#isDetached = true
      yield { event, data } as TurnEvent
    }
  }

  async stop(): Promise<void> {
    if (!this.#isDetached) return
    await this.client.call(chat.stop, { params: this.#conversationParams }).catch(error => {
      // The turn may have ended already.
      if (!(error instanceof WbError && error.code === 'not_found')) throw error
    })
  }

  /** Sends a message whose turn ends when the connection closes. The caller can approve tool calls. */
  sendWithApprovals(message: OutgoingMessage, signal: AbortSignal): AsyncGenerator<TurnEvent> {
    return this.#streamTurn({ ...message, approvals: true }, signal)
  }

  /** Like {@link sendWithApprovals}, but tools that need an approval are denied. */
  sendWithoutApprovals(message: OutgoingMessage, signal: AbortSignal): AsyncGenerator<TurnEvent> {
    return this.#streamTurn(message, signal)
  }

  async sendAndWait(message: OutgoingMessage): Promise<MessagePair> {
    const pair = await this.#inConversation(params =>
      this.client.call(chat.send, { params, body: requestBody(message) }),
    )
    this.#isUnused = false
    return pair
  }

  /**
   * Attaches files to the conversation in the given order.
   *
   * @throws WbError  the runtime rejects a file; if the conversation was created for the files, it is deleted
   */
  async attachFiles(files: readonly File[]): Promise<void> {
    await this.#inConversation(async params => {
      for (const file of files) await this.#upload(params, file, this.signal)
    })
  }

  /** Like {@link attachFiles} for one file, but keeps the conversation even if its first question is rejected. */
  async attachFile(file: File, signal: AbortSignal): Promise<Attachment> {
    const combinedSignal = AbortSignal.any([this.signal, signal])
    const attachment = await this.#inConversation(params => this.#upload(params, file, combinedSignal))
    this.#isUnused = false
    return attachment
  }

  async attachments(): Promise<readonly Attachment[]> {
    if (this.#conversationId === undefined) return []
    const request = { params: this.#conversationParams, query: { limit: limits.attachmentsPerConversation } }
    return (await this.client.call(attachments.list, request)).items
  }

  #upload(params: ConversationParams, file: File, signal: AbortSignal): Promise<Attachment> {
    const body = new FormData()
    body.set('file', file)
    return this.client.call(attachments.create, { params, body }, { signal })
  }

  async decide(approvalId: string, decision: Approval['decision']): Promise<void> {
    const params = { ...this.#conversationParams, approvalId }
    await this.client.call(chat.decide, { params, body: { decision } })
  }

  async messages(): Promise<Message[]> {
    if (this.#conversationId === undefined) {
      await this.client.call(agents.show, { params: this.#agentParams })
      return []
    }
    return collect(this.client.items(messages.list, { params: this.#conversationParams }))
  }

  async exportMarkdown(): Promise<string | undefined> {
    const messages = await this.messages()
    // Load the conversation again, because the runtime sets its title after the first question.
    this.#conversation = undefined
    const conversation = await this.#loadConversation()
    if (!conversation || messages.length === 0) return undefined
    return plain(conversationMarkdown(conversation, this.agent.name, messages, await this.attachments()))
  }

  async findPassages(question: string): Promise<Passage[]> {
    const { workspaceId } = this.agent
    const ids = await this.#knowledgeBaseIdsInUse()
    const knowledgeBaseIds = ids.length === 0 ? undefined : [...ids]
    return findPassages(
      {
        client: this.client,
        base: { workspaceId },
        signal: this.signal,
        body: { text: question.slice(0, limits.searchTextChars), knowledgeBaseIds },
      },
      { limit: passagesMax },
    )
  }

  async citedPassage({ knowledgeBaseId, attachmentId, documentId, chunkId, chunkIndex }: Citation) {
    const { workspaceId } = this.agent
    if (attachmentId !== null) return this.#attachedPassage(attachmentId, chunkIndex ?? 0)
    if (documentId === null || knowledgeBaseId === null) return { text: '', neighbors: ['', ''] as const }
    const params = { workspaceId, knowledgeBaseId, documentId }
    const document = await this.client.call(documents.show, { params })
    let previousText = ''
    let text: string | undefined
    for await (const chunk of readDocumentChunks(this.client, document)) {
      const chunkText = chunk.text ?? ''
      if (text !== undefined) return { text, neighbors: [previousText, chunkText] as const }
      if (chunk.id === chunkId) text = chunkText
      else previousText = chunkText
    }
    return { text: text ?? '', neighbors: [text === undefined ? '' : previousText, ''] as const }
  }

  async usedPassages(answer: Message): Promise<Citation[]> {
    const chunks = usedChunks(answer).slice(0, usedPassagesMax)
    const citations = await Promise.all(
      chunks.map(async ({ chunkId, knowledgeBaseId, documentId }): Promise<Citation[]> => {
        const params = { workspaceId: this.agent.workspaceId, knowledgeBaseId, documentId }
        const document = await this.client.call(documents.show, { params }).catch(error => {
          if (error instanceof WbError && error.code === 'document_not_found') return undefined
          throw error
        })
        if (!document) return []
        const title = documentName(document)
        const { sourceFilename } = document
        const noLocation = { attachmentId: null, chunkIndex: null, page: null }
        return [{ number: 1, chunkId, knowledgeBaseId, documentId, title, sourceFilename, ...noLocation }]
      }),
    )
    return citations.flat().map((citation, index) => ({ ...citation, number: index + 1 }))
  }

  async documentTitles(max: number): Promise<string[]> {
    const { workspaceId } = this.agent
    const usedIds = await this.#knowledgeBaseIdsInUse()
    const ids = usedIds.length > 0 ? usedIds : (await this.knowledgeBases()).map(({ id }) => id)
    const pages = await Promise.all(
      ids.slice(0, max).map(knowledgeBaseId =>
        this.client.call(documents.list, {
          params: { workspaceId, knowledgeBaseId },
          query: { limit: max },
        }),
      ),
    )
    const titles = pages.map(({ items }) => items.map(documentName))
    const interleaved = Array.from({ length: max }, (_, index) =>
      titles.flatMap(names => names[index] ?? []),
    ).flat()
    return [...new Set(interleaved)].slice(0, max)
  }

  async #attachedPassage(attachmentId: string, index: number) {
    const params = { ...this.#conversationParams, attachmentId }
    const { text, chunkEnds } = await this.client.call(attachments.show, { params })
    const chunkEnd = (index: number) => (index < 0 ? 0 : (chunkEnds[index] ?? text.length))
    const chunkText = (index: number) => text.slice(chunkEnd(index - 1), chunkEnd(index))
    return { text: chunkText(index), neighbors: [chunkText(index - 1), chunkText(index + 1)] as const }
  }

  async tools() {
    const { workspaceId, toolIds } = this.agent
    const { items } = await this.client.call(agents.tools, { params: { workspaceId } })
    return items.filter(({ id, source }) =>
      toolIds.length === 0 ? source === 'builtin' : toolIds.includes(id),
    )
  }

  async models(): Promise<ChoiceItem[]> {
    const { workspaceId, llmServiceId: agentServiceId } = this.agent
    const all = await collect(this.client.items(llmServices.list, { params: { workspaceId } }))
    return all.map(({ llmServiceId: id, name, provider, modelName }) => ({
      id,
      name: modelName,
      alias: name,
      description: `${name}, ${provider}${id === agentServiceId ? ", the agent's default" : ''}`,
      isChosen: id === agentServiceId,
    }))
  }

  async knowledgeBases(): Promise<ChoiceItem[]> {
    const { workspaceId } = this.agent
    const idsInUse = await this.#knowledgeBaseIdsInUse()
    const all = await listKnowledgeBases(this.client, workspaceId)
    return all.map(({ knowledgeBaseId: id, name, description }) => ({
      id,
      name,
      description: description ?? '',
      isChosen: idsInUse.length === 0 || idsInUse.includes(id),
    }))
  }

  async knowledgeBasesInUse(): Promise<string[]> {
    const idsInUse = await this.#knowledgeBaseIdsInUse()
    if (idsInUse.length === 0) return []
    const all = await listKnowledgeBases(this.client, this.agent.workspaceId)
    return all.flatMap(({ knowledgeBaseId, name }) => (idsInUse.includes(knowledgeBaseId) ? [name] : []))
  }

  async useKnowledgeBases(selectedIds: readonly string[]): Promise<void> {
    const ids = selectedIds.length === 0 ? await this.#wholeWorkspaceIds() : selectedIds
    this.#knowledgeBaseIds = ids
    if (this.#conversationId === undefined) return
    this.#conversation = await this.client.call(conversations.update, {
      params: this.#conversationParams,
      body: { knowledgeBaseIds: [...ids] },
    })
  }

  /**
   * Returns the IDs that select the whole workspace: an empty list, or all IDs if the agent is limited to some
   * knowledge bases, because an empty list would select those.
   */
  async #wholeWorkspaceIds(): Promise<string[]> {
    if (this.agent.knowledgeBaseIds.length === 0) return []
    return (await this.knowledgeBases()).map(({ id }) => id)
  }

  async conversations(search: string): Promise<ChoiceItem[]> {
    const query = { sort: 'activity' as const, ...(search !== '' && { q: search }) }
    const items = this.client.items(conversations.list, { params: this.#agentParams, query })
    return (await collect(items)).map(conversation => ({
      id: conversation.conversationId,
      name: conversationName(conversation),
      description: formatAgo(Date.parse(conversation.lastActivityAt), systemClock.now()),
      isChosen: conversation.conversationId === this.#conversationId,
    }))
  }

  async versions(messageId: string): Promise<ChoiceItem[]> {
    const params = { ...this.#conversationParams, messageId }
    const { items } = await this.client.call(messages.versions, { params })
    return items.map(({ message, answer, isCurrent }, index) => ({
      id: message.messageId,
      name: `${index + 1} of ${items.length}`,
      description: plainLine(`${message.content} → ${answer?.content ?? 'no answer'}`),
      isChosen: isCurrent,
    }))
  }

  async useVersion(messageId: string): Promise<void> {
    await this.client.call(messages.select, { params: { ...this.#conversationParams, messageId } })
  }

  async rename(title: string): Promise<void> {
    const params = this.#conversationParams
    this.#conversation = await this.client.call(conversations.update, { params, body: { title } })
  }

  switchConversation(conversationId: string | undefined): void {
    this.#conversationId = conversationId
    this.#conversation = undefined
    this.#isUnused = false
    if (conversationId !== undefined) this.#knowledgeBaseIds = undefined
  }

  /** Returns the newest conversation with this agent; undefined if none exists. */
  async newestConversation(): Promise<Conversation | undefined> {
    const page = { params: this.#agentParams, query: { limit: 1 } }
    return (await this.client.call(conversations.list, page)).items[0]
  }

  get #agentParams() {
    const { workspaceId, agentId } = this.agent
    return { workspaceId, agentId }
  }

  get #conversationParams(): ConversationParams {
    return { ...this.#agentParams, conversationId: this.#conversationId ?? '' }
  }

  /** Returns the IDs of the knowledge bases of the conversation, else of the agent; empty for the whole workspace. */
  async #knowledgeBaseIdsInUse(): Promise<readonly string[]> {
    const conversation = await this.#loadConversation()
    const selected = conversation?.knowledgeBaseIds ?? this.#knowledgeBaseIds ?? []
    return selected.length > 0 ? selected : this.agent.knowledgeBaseIds
  }

  async #loadConversation(): Promise<Conversation | undefined> {
    if (this.#conversationId === undefined) return undefined
    this.#conversation ??= await this.client.call(conversations.show, { params: this.#conversationParams })
    return this.#conversation
  }

  async *#streamTurn(
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
      if (event === 'stream-error' && this.#isUnused) await this.#discardConversation()
      else this.#isUnused = false
      yield { event, data } as TurnEvent
      for await (const { event, data } of rest) yield { event, data } as TurnEvent
    } finally {
      // Close the stream even if the consumer stops early, because an open stream keeps the process alive.
      await rest.return(undefined)
    }
  }

  /** Sends a request in the conversation. A new conversation is deleted if its first request is rejected. */
  async #inConversation<T>(send: (params: ConversationParams) => Promise<T>): Promise<T> {
    const conversationId = this.#conversationId ?? (await this.#createConversation())
    try {
      return await send({ ...this.#agentParams, conversationId })
    } catch (error) {
      if (this.#isUnused && error instanceof WbError) await this.#discardConversation()
      throw error
    }
  }

  async #createConversation(): Promise<string> {
    const body = { knowledgeBaseIds: [...(this.#knowledgeBaseIds ?? [])] }
    this.#conversation = await this.client.call(conversations.create, { params: this.#agentParams, body })
    this.#conversationId = this.#conversation.conversationId
    this.#isUnused = true
    return this.#conversationId
  }

  async #discardConversation(): Promise<void> {
    const conversationId = this.#conversationId
    this.switchConversation(undefined)
    if (conversationId === undefined) return
    await this.client.call(conversations.delete, { params: { ...this.#agentParams, conversationId } })
  }
}

/** Returns the request body for a message, without the file names of its images. */
function requestBody<S extends OutgoingMessage>({ images = [], ...message }: S) {
  const imageInputs = images.map(({ mediaType, data }) => ({ mediaType, data }))
  return { ...message, ...(imageInputs.length > 0 && { images: imageInputs }) }
}
