import type { ChatSubject } from '../../cli/chat/interface.ts'
import type { ChoiceItem, NamedImage, OutgoingMessage } from '../../cli/chat/port.ts'
import type { Passage } from '../../cli/passages/find-passages.ts'
import type { Approval, Citation, ToolCall, ToolOutcome, TurnEvent } from '../../contract/chat.ts'
import type { Message } from '../../contract/conversations.ts'
import type { Block, BlockReader } from '../markdown/blocks.ts'
import type { Editor } from '../parts/editor.ts'
import type { Key } from '../parts/keys.ts'
import type { Size } from '../parts/terminal-session.ts'

/** A tool call, with its result once it has one. */
export interface ToolRun {
  /** Number for `/expand`, from 1. */
  readonly number: number
  readonly call: ToolCall
  readonly sinceMs: number
  readonly result?: { readonly content: string; readonly outcome: ToolOutcome; readonly durationMs: number }
}

/** A tool call that waits for approval. */
export interface PendingApproval {
  readonly approvalId: string
  readonly call: ToolCall
  readonly expiresMs: number
  readonly sinceMs: number
}

/** A message that was sent, and the answer so far. */
export interface Turn {
  readonly message: OutgoingMessage
  /** Undefined until the runtime has stored the message. */
  readonly messageId: string | undefined
  /** ID of the question before it. */
  readonly afterId: string | undefined
  /** The last question and answer before the message was sent. */
  readonly before: LastExchange
  readonly sinceMs: number
  /** The end of the answer that is not printed yet. */
  readonly reader: BlockReader
  readonly text: string
  /** Reasoning in progress; undefined while the model does not reason. */
  readonly thought: { readonly text: string; readonly sinceMs: number } | undefined
  /** The name of the agent was printed. */
  readonly hasHeading: boolean
  /** A tool ran since the agent last said something. */
  readonly isAfterTool: boolean
  /** The connection broke, and the turn is about to be read again. */
  readonly isReconnecting: boolean
  readonly running: readonly ToolRun[]
  readonly pending: readonly PendingApproval[]
}

/** A message of the person. */
export interface Question {
  readonly content: string
  readonly messageId: string | undefined
  readonly images?: readonly NamedImage[]
  /** Images of a question that this chat did not send; it has no data of them. */
  readonly storedImages?: Message['images']
}

/** The last question and answer, which commands refer to. */
export interface LastExchange {
  readonly question: Question | undefined
  readonly answer: string
  /** True if the answer belongs to this question, not to an earlier one. */
  readonly isAnswered: boolean
  /** Reasoning of the last turn; empty if there was none. */
  readonly thoughts: string
  /** Passages of this and earlier answers, by number. */
  readonly citations: readonly Citation[]
  /** Texts of found passages by chunk ID. */
  readonly texts: Readonly<Record<string, string>>
}

/** The field for the next message. */
export interface ComposerState {
  readonly editor: Editor
  /** Sent lines, oldest first. */
  readonly past: readonly string[]
  /** The sent line that is in the field, and the text that it replaced. */
  readonly recalled: { readonly at: number; readonly draft: Editor } | undefined
  readonly search: { readonly query: string; readonly at: number; readonly draft: Editor } | undefined
  /** The completion that is in the field. */
  readonly completion:
    | {
        readonly offer: { readonly before: string; readonly words: readonly string[]; readonly after: string }
        readonly at: number
      }
    | undefined
  /** ID of the message that the one in the field replaces. */
  readonly replaces: string | undefined
}

/** Subject of a list to choose from. */
export type ChoicePurpose = 'model' | 'kb' | 'history' | 'versions' | 'questions'
/** Subjects whose items can be chosen by typing their names. */
export type NamedPurpose = Exclude<ChoicePurpose, 'history' | 'versions' | 'questions'>

export interface ChoicePanel {
  readonly kind: 'choice'
  readonly purpose: ChoicePurpose
  readonly title: string
  readonly items: readonly ChoiceItem[]
  readonly at: number
  /** Knowledge bases were named, so a choice of all current ones does not include future ones. */
  readonly isNamed?: boolean
}

/** A text that fills the screen. */
export interface PanelPage {
  readonly text: string
  readonly format: 'markdown' | 'plain'
}

/** A text or a list that fills the screen until it is closed. */
export type ChatPanel =
  | {
      readonly kind: 'text'
      readonly title: string
      readonly page: PanelPage
      /** Line at the top of the screen. */
      readonly top: number
    }
  | ChoicePanel

/** State of a chat, without the part of the conversation that is printed. */
export interface ChatState {
  readonly about: ChatSubject
  readonly size: Size
  readonly nowMs: number
  readonly input: ComposerState
  /** Images of the next question. */
  readonly images: readonly NamedImage[]
  /** Work on a file, such as `attaching day.md`; questions wait for its end. */
  readonly fileTask: string | undefined
  readonly turn: Turn | undefined
  /** Messages to send after the current turn, in order. */
  readonly queue: readonly OutgoingMessage[]
  /** Set while the runtime cannot be reached; `waiting` is a message that it has not received. */
  readonly outage:
    | {
        readonly waiting: OutgoingMessage | undefined
        readonly afterId?: string
        /** The question whose answer was lost. */
        readonly lost?: { readonly message: OutgoingMessage; readonly messageId: string }
      }
    | undefined
  readonly last: LastExchange
  readonly runs: readonly ToolRun[]
  readonly llmServiceId: string | undefined
  readonly temperature: number | undefined
  /** Tokens of the last request and its answer, and the context window of the model. */
  readonly context: { readonly tokens: number; readonly window: number } | undefined
  /** Name of the model of the last answer, or of the chosen one; undefined if unknown, null if no model answers. */
  readonly model: string | null | undefined
  readonly panel: ChatPanel | undefined
  /** Words for completion, as far as they are loaded. */
  readonly names: Partial<Record<NamedPurpose, readonly string[]>>
  readonly spent: { readonly tokens: number; readonly costUsd: number | undefined }
  /** Questions that an empty chat suggests. */
  readonly suggestions: readonly string[]
  /** Ctrl-C was pressed, and leaves if pressed again. */
  readonly isLeaving: boolean
  readonly notice: string
}

/** An error in words for the user. */
export interface ChatFailure {
  readonly kind: 'unreachable' | 'refused'
  readonly code: string
  readonly message: string
  /** Lines about what to do next. */
  readonly next: readonly string[]
}

/** An event of a chat: a key, or news from the runtime. */
export type ChatEvent =
  | Key
  | {
      readonly type: 'turn'
      readonly event: TurnEvent
      /** Passages of an answer that cites none. */
      readonly used?: readonly Citation[]
    }
  | { readonly type: 'suggestionsLoaded'; readonly questions: readonly string[] }
  | { readonly type: 'failed'; readonly failure: ChatFailure }
  | { readonly type: 'connection'; readonly isLost: boolean }
  /** A running turn was found, and its events follow from the first one. */
  | { readonly type: 'attached'; readonly question: Message }
  | { readonly type: 'tick'; readonly nowMs: number }
  | { readonly type: 'resized'; readonly size: Size }
  | { readonly type: 'reconnected'; readonly messages: readonly Message[] }
  | { readonly type: 'passagesFound'; readonly passages: readonly Passage[] }
  | { readonly type: 'panelOpened'; readonly panel: ChatPanel }
  /** Items were chosen by name, without a list. */
  | { readonly type: 'itemsChosen'; readonly panel: ChoicePanel }
  | { readonly type: 'namesLoaded'; readonly of: NamedPurpose; readonly names: readonly string[] }
  | {
      readonly type: 'resumed'
      readonly messages: readonly Message[]
      readonly title: string
      /** Shows the messages from this one on; the last ones if absent. */
      readonly fromId?: string
      /** Names of the knowledge bases of the conversation; unchanged if absent. */
      readonly knowledgeBases?: readonly string[]
    }
  | { readonly type: 'basesChanged'; readonly knowledgeBases: readonly string[] }
  /** A question of the conversation is put into the field, to be edited. */
  | { readonly type: 'editing'; readonly question: Question }
  | { readonly type: 'imageRead'; readonly image: NamedImage }
  /** The work on a file succeeded or failed. */
  | { readonly type: 'fileTaskEnded' }
  | { readonly type: 'note'; readonly text: string; readonly isBad: boolean }
  /** A whole line was typed, in an interface that does not read keys. */
  | { readonly type: 'submitted'; readonly text: string }

/** A part of the conversation that is printed, and does not change any more. */
export type TranscriptPart =
  | {
      readonly kind: 'question'
      readonly text: string
      /** A line for each image. */
      readonly images?: readonly string[]
    }
  | { readonly kind: 'answer'; readonly block: Block; readonly isFirst: boolean; readonly isAside: boolean }
  | { readonly kind: 'tool'; readonly run: ToolRun }
  | {
      readonly kind: 'sources'
      readonly citations: readonly Citation[]
      /** The answer used these passages, but cites none. */
      readonly isUncited?: boolean
    }
  | {
      readonly kind: 'passages'
      readonly question: string
      readonly passages: readonly Passage[]
      /** Includes how to set up a model. */
      readonly hasSetup: boolean
    }
  | { readonly kind: 'note'; readonly text: string; readonly tone: 'dim' | 'good' | 'bad' }
  | { readonly kind: 'help' }

/** Reads a running turn from its first event, if it is one of this content and not one of these questions. */
export interface ResumeEffect {
  readonly type: 'resume'
  readonly content?: string
  readonly exceptIds: readonly (string | undefined)[]
  /** Sent if no such turn is running. */
  readonly orSend?: OutgoingMessage
}

/** Work for {@link Chat}, which the state only asks for. */
export type ChatEffect =
  | { readonly type: 'print'; readonly printed: TranscriptPart }
  | { readonly type: 'send'; readonly message: OutgoingMessage }
  | ResumeEffect
  | { readonly type: 'abort' }
  | { readonly type: 'decide'; readonly approvalId: string; readonly decision: Approval['decision'] }
  /** Retry until the runtime answers. */
  | { readonly type: 'wait' }
  | { readonly type: 'stopWaiting' }
  | { readonly type: 'find'; readonly question: string }
  | { readonly type: 'openPassage'; readonly citation: Citation; readonly known: string | undefined }
  | { readonly type: 'readImage'; readonly path: string }
  | { readonly type: 'attachFile'; readonly path: string }
  | { readonly type: 'openAttachments' }
  | { readonly type: 'stopFileTask' }
  | { readonly type: 'openTools' }
  | { readonly type: 'loadSuggestions' }
  | { readonly type: 'openChoices'; readonly purpose: ChoicePurpose; readonly search?: string }
  | { readonly type: 'choose'; readonly of: NamedPurpose; readonly typed: string }
  | { readonly type: 'loadNames'; readonly of: NamedPurpose }
  /** Goes back to another version of a question: by item, or of the last one with versions by number. */
  | { readonly type: 'useVersion'; readonly version: { readonly id: string; readonly name: string } | number }
  /** Reads an earlier question to edit. */
  | { readonly type: 'loadQuestion'; readonly messageId: string }
  /** Goes to the version before or after the current one of the last question with versions. */
  | { readonly type: 'stepVersion'; readonly by: -1 | 1 }
  | { readonly type: 'rename'; readonly title: string }
  | { readonly type: 'useKnowledgeBases'; readonly chosen: readonly { id: string; name: string }[] }
  /** Continues a conversation, or starts one. */
  | {
      readonly type: 'openConversation'
      readonly conversation: { readonly id: string; readonly name: string } | undefined
    }
  | { readonly type: 'copy'; readonly text: string; readonly what: string }
  | { readonly type: 'export'; readonly file: string | undefined }
  | { readonly type: 'redraw' }
  | { readonly type: 'leave' }

export type ChatStep = readonly [ChatState, readonly ChatEffect[]]
