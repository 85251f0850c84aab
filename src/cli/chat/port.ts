import type { Attachment } from '../../contract/attachments.ts'
import type { Approval, Citation, TurnEvent } from '../../contract/chat.ts'
import type { Message } from '../../contract/conversations.ts'
import type { ImageInput } from '../../contract/images.ts'
import type { Passage } from '../passages/hits.ts'

/** An image to send, with the name of its file, which is not sent. */
export interface NamedImage extends ImageInput {
  readonly name: string
}

/** What a person says to an agent. */
export interface Say {
  readonly content: string
  readonly images?: readonly NamedImage[]
  /** Answers this message instead of the agent's own model. */
  readonly llmServiceId?: string
  /** Temperature of the answer; that of the service if absent. */
  readonly temperature?: number
  /** A message of the person that this one stands for, from now on. */
  readonly replaces?: string
}

/** One of several that a person chooses from. */
export interface Choice {
  readonly id: string
  readonly name: string
  /** It answers to this as well. */
  readonly alias?: string
  /** What else is said of it. */
  readonly about: string
  readonly isChosen: boolean
}

/** What a conversation is held through. All of it throws `WbError` and `Unreachable`, as the client does. */
export interface ChatPort {
  /** Sends a message, and returns the events of its turn. The first message begins the conversation. */
  send(say: Say, signal: AbortSignal): AsyncIterable<TurnEvent>
  /** Returns the events of the last detached turn from its first one. @throws WbError not_found */
  attach(signal: AbortSignal): AsyncIterable<TurnEvent>
  /** Stops the running turn, if closing its connection does not. */
  stop(): Promise<void>
  decide(approvalId: string, decision: Approval['decision']): Promise<void>
  /** The messages of the conversation in order; none before the first. */
  said(): Promise<Message[]>
  /** The conversation as a Markdown document; undefined before the first message. */
  exported(): Promise<string | undefined>
  /** Passages for a question where no model answers it. */
  find(question: string): Promise<Passage[]>
  /** The text around a passage that was cited: its chunk, with the one before and the one behind it. */
  passage(citation: Citation): Promise<{ readonly text: string; readonly around: readonly [string, string] }>
  /** Attaches a file to the conversation, and begins one if there is none. */
  attachFile(file: File, signal: AbortSignal): Promise<Attachment>
  /** Returns the attachments of the conversation, the oldest first. */
  attachments(): Promise<readonly Attachment[]>
  /** Ids of tools that the agent may use, each with what it does. */
  tools(): Promise<readonly { readonly id: string; readonly description: string }[]>
  models(): Promise<Choice[]>
  knowledgeBases(): Promise<Choice[]>
  /** Returns the names of the knowledge bases that the next answer reads; empty for all of the workspace. */
  knowledgeBasesInUse(): Promise<readonly string[]>
  /** Answer from these from now on; none is all of the workspace. */
  useKnowledgeBases(ids: readonly string[]): Promise<void>
  /** Returns conversations with the agent, last used first. Words limit them to those that contain all of them. */
  conversations(search: string): Promise<Choice[]>
  /** Returns the versions of a question, oldest first. */
  versions(messageId: string): Promise<Choice[]>
  /** Puts a version of a question back into the conversation, with all messages that followed it. */
  useVersion(messageId: string): Promise<void>
  rename(title: string): Promise<void>
  /** Go on with a conversation, or with undefined begin another one. */
  goOn(conversationId: string | undefined): void
}
