import type { Attachment } from '../../contract/attachments.ts'
import type { Approval, Citation, TurnEvent } from '../../contract/chat.ts'
import type { Message } from '../../contract/conversations.ts'
import type { ImageInput } from '../../contract/images.ts'
import type { Passage } from '../passages/find-passages.ts'

/** An image to send. The file name is only shown to the user. */
export interface NamedImage extends ImageInput {
  readonly name: string
}

/** A message to an agent. */
export interface OutgoingMessage {
  readonly content: string
  readonly images?: readonly NamedImage[]
  /** LLM service for this message; by default, the service of the agent. */
  readonly llmServiceId?: string
  /** Temperature of the answer; by default, the setting of the agent or the service. */
  readonly temperature?: number
  /** ID of the earlier message that this message replaces. */
  readonly replaces?: string
}

/** An item to choose from. */
export interface ChoiceItem {
  readonly id: string
  readonly name: string
  /** Alternative name of the item. */
  readonly alias?: string
  /** A short description. */
  readonly description: string
  readonly isChosen: boolean
}

/** Maximum number of passages to list below an answer without citations. */
export const usedPassagesMax = 6

/** A conversation in a runtime. All methods throw `WbError` and `Unreachable`, like the client. */
export interface ChatPort {
  /** Sends a message, and returns the events of its turn. The first message starts the conversation. */
  send(message: OutgoingMessage, signal: AbortSignal): AsyncIterable<TurnEvent>
  /**
   * Returns all events of the last detached turn, which continues when its connection closes.
   *
   * @throws WbError not_found
   */
  readRunningTurn(signal: AbortSignal): AsyncIterable<TurnEvent>
  /** Stops the running turn if it is detached. Other turns stop when their connection closes. */
  stop(): Promise<void>
  decide(approvalId: string, decision: Approval['decision']): Promise<void>
  /** Returns the messages of the conversation in order. */
  messages(): Promise<Message[]>
  /** Returns the conversation as a Markdown document; undefined before the first message. */
  exportMarkdown(): Promise<string | undefined>
  /** Searches for passages to show when no model can answer the question. */
  findPassages(question: string): Promise<Passage[]>
  /** Returns a cited chunk with the chunks before and after it. */
  citedPassage(
    citation: Citation,
  ): Promise<{ readonly text: string; readonly neighbors: readonly [string, string] }>
  /**
   * Returns the passages that were used for an answer without citations, numbered from 1. Returns at most
   * {@link usedPassagesMax}, without passages of attachments and of deleted documents.
   */
  usedPassages(answer: Message): Promise<readonly Citation[]>
  /** Returns at most `max` document titles, alternating between the knowledge bases in use. */
  documentTitles(max: number): Promise<readonly string[]>
  /** Attaches a file to the conversation, and creates the conversation if necessary. */
  attachFile(file: File, signal: AbortSignal): Promise<Attachment>
  /** Returns the attachments of the conversation, the oldest first. */
  attachments(): Promise<readonly Attachment[]>
  /** Returns the tools that the agent may use. */
  tools(): Promise<readonly { readonly id: string; readonly description: string }[]>
  models(): Promise<ChoiceItem[]>
  knowledgeBases(): Promise<ChoiceItem[]>
  /** Returns the names of the knowledge bases that the next answer uses; empty for the whole workspace. */
  knowledgeBasesInUse(): Promise<readonly string[]>
  /** Sets the knowledge bases for later answers. An empty list means the whole workspace. */
  useKnowledgeBases(ids: readonly string[]): Promise<void>
  /** Returns the conversations with the agent that contain all words of `search`, last used first. */
  conversations(search: string): Promise<ChoiceItem[]>
  /** Returns the versions of a question, oldest first. */
  versions(messageId: string): Promise<ChoiceItem[]>
  /** Restores a version of a question in the conversation, with all messages that followed it. */
  useVersion(messageId: string): Promise<void>
  rename(title: string): Promise<void>
  /** Continues a conversation. If the ID is undefined, the next message starts a new conversation. */
  switchConversation(conversationId: string | undefined): void
}
