import type { ChatSubject } from '../../cli/chat/chat-interfaces.ts'
import type { ChoiceItem, NamedImage, OutgoingMessage } from '../../cli/chat/port.ts'
import type { Passage } from '../../cli/passages/find-passages.ts'
import type { Approval, Citation, ToolCall, ToolOutcome, TurnEvent } from '../../contract/chat.ts'
import type { Message } from '../../contract/conversations.ts'
import type { Block, BlockReader } from '../markdown/blocks.ts'
import type { Editor } from '../parts/editor.ts'
import type { Key } from '../parts/keys.ts'
import type { Size } from '../parts/terminal-session.ts'

/** A tool call, with its result once it has finished. */
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

/** A sent message, and the answer so far. */
export interface Turn {
  readonly message: OutgoingMessage
  /** Undefined until the runtime has stored the message. */
  readonly messageId: string | undefined
  /** ID of the question before the message. */
  readonly afterId: string | undefined
  /** The last question and answer before the message was sent. */
  readonly before: LastExchange
  readonly sinceMs: number
  /** Reader of the answer, with the part that is not printed yet. */
  readonly reader: BlockReader
  readonly text: string
  /** Reasoning in progress; undefined while the model does not reason. */
  readonly thought: { readonly text: string; readonly sinceMs: number } | undefined
  /** True once the name of the agent was printed. */
  readonly hasHeading: boolean
  /** True if a tool has run since the last text of the agent. */
  readonly isAfterTool: boolean
  /** True while the connection is lost and being restored. */
  readonly isReconnecting: boolean
  readonly runningTools: readonly ToolRun[]
  readonly pendingApprovals: readonly PendingApproval[]
}

/** A message of the user. */
export interface Question {
  readonly content: string
  readonly messageId: string | undefined
  readonly images?: readonly NamedImage[]
  /** Images of a question that this chat did not send. Their contents are not available here. */
  readonly storedImages?: Message['images']
}

/** The last question and answer, which commands refer to. */
export interface LastExchange {
  readonly question: Question | undefined
  readonly answer: string
  /** True if the answer belongs to this question; false if it belongs to an earlier one. */
  readonly isAnswered: boolean
  /** Reasoning of the last turn; empty if there was none. */
  readonly thoughts: string
  /** Passages of this and earlier answers, in order of their numbers. */
  readonly citations: readonly Citation[]
  /** Texts of passages that a search found, by chunk ID. */
  readonly texts: Readonly<Record<string, string>>
}

/** State of the composer, the field for the next message. */
export interface ComposerState {
  readonly editor: Editor
  /** Sent lines, oldest first. */
  readonly sentLines: readonly string[]
  /** The sent line that is shown in the field, and the draft that it replaced. */
  readonly recalled: { readonly at: number; readonly draft: Editor } | undefined
  /** Search in the sent lines: the query, the index of the match, and the draft that it replaced. */
  readonly search: { readonly query: string; readonly at: number; readonly draft: Editor } | undefined
  /** The completion that is shown in the field. */
  readonly completion:
    | {
        readonly offer: { readonly before: string; readonly words: readonly string[]; readonly after: string }
        readonly at: number
      }
    | undefined
  /** ID of the earlier message that the next message replaces. */
  readonly replaces: string | undefined
}

/** Type of a list to choose from. */
export type ChoicePurpose = 'model' | 'kb' | 'history' | 'versions' | 'questions'
/** Lists whose items can be chosen by typing their names. */
export type NamedPurpose = Exclude<ChoicePurpose, 'history' | 'versions' | 'questions'>

/** A list to choose from. `at` is the index of the current row. */
export interface ChoicePanel {
  readonly kind: 'choice'
  readonly purpose: ChoicePurpose
  readonly title: string
  readonly items: readonly ChoiceItem[]
  readonly at: number
  /** True if the knowledge bases were chosen by name. A choice of all current ones then excludes future ones. */
  readonly isNamed?: boolean
}

/** The text of a panel. */
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

/** State of a chat, except for the part of the conversation that is already printed. */
export interface ChatState {
  readonly subject: ChatSubject
  readonly size: Size
  readonly nowMs: number
  readonly input: ComposerState
  /** Images of the next question. */
  readonly images: readonly NamedImage[]
  /** Current work on a file, such as `attaching day.md`. Questions cannot be sent until it ends. */
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
  readonly toolRuns: readonly ToolRun[]
  readonly llmServiceId: string | undefined
  readonly temperature: number | undefined
  /** Tokens of the last request and its answer, and the context window of the model. */
  readonly context: { readonly tokens: number; readonly window: number } | undefined
  /** Name of the chosen model, or of the model of the last answer; undefined if unknown, null if there is no model. */
  readonly model: string | null | undefined
  readonly panel: ChatPanel | undefined
  /** Loaded names for completion. */
  readonly names: Partial<Record<NamedPurpose, readonly string[]>>
  readonly spent: { readonly tokens: number; readonly costUsd: number | undefined }
  /** Questions that an empty chat suggests. */
  readonly suggestions: readonly string[]
  /** True after Ctrl-C. Another Ctrl-C leaves the chat. */
  readonly isLeaving: boolean
  readonly notice: string
}

/** An error, as shown to the user. */
export interface ChatFailure {
  readonly kind: 'unreachable' | 'rejected'
  readonly code: string
  readonly message: string
  /** Lines that explain what to do next. */
  readonly next: readonly string[]
}

/** An event of a chat: a key, or a message from the runtime. */
export type ChatEvent =
  | Key
  | {
      readonly type: 'turn'
      readonly event: TurnEvent
      /** Passages that an answer used, if it cites none. */
      readonly used?: readonly Citation[]
    }
  | { readonly type: 'suggestionsLoaded'; readonly questions: readonly string[] }
  | { readonly type: 'failed'; readonly failure: ChatFailure }
  | { readonly type: 'connection'; readonly isLost: boolean }
  /** The chat attached to a running turn. Its events follow, starting with the first. */
  | { readonly type: 'attached'; readonly question: Message }
  | { readonly type: 'tick'; readonly nowMs: number }
  | { readonly type: 'resized'; readonly size: Size }
  | { readonly type: 'reconnected'; readonly messages: readonly Message[] }
  | { readonly type: 'passagesFound'; readonly passages: readonly Passage[] }
  | { readonly type: 'panelOpened'; readonly panel: ChatPanel }
  /** Items were chosen by name, without opening the list. */
  | { readonly type: 'itemsChosen'; readonly panel: ChoicePanel }
  | { readonly type: 'namesLoaded'; readonly purpose: NamedPurpose; readonly names: readonly string[] }
  | {
      readonly type: 'resumed'
      readonly messages: readonly Message[]
      readonly title: string
      /** ID of the first message to show; by default, only the last messages are shown. */
      readonly fromId?: string
      /** Names of the knowledge bases of the conversation; unchanged if undefined. */
      readonly knowledgeBases?: readonly string[]
    }
  | { readonly type: 'basesChanged'; readonly knowledgeBases: readonly string[] }
  /** A question of the conversation was loaded into the composer for editing. */
  | { readonly type: 'editing'; readonly question: Question }
  | { readonly type: 'imageRead'; readonly image: NamedImage }
  /** The work on a file succeeded or failed. */
  | { readonly type: 'fileTaskEnded' }
  | { readonly type: 'note'; readonly text: string; readonly isBad: boolean }
  /** A whole line was typed in an interface that does not read single keys. */
  | { readonly type: 'submitted'; readonly text: string }

/** A part of the conversation that is printed once and then does not change. */
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
      /** True if the answer used these passages, but cites none of them. */
      readonly isUncited?: boolean
    }
  | {
      readonly kind: 'passages'
      readonly question: string
      readonly passages: readonly Passage[]
      /** True to explain how to set up a model. */
      readonly hasSetup: boolean
    }
  | { readonly kind: 'note'; readonly text: string; readonly tone: 'dim' | 'good' | 'bad' }
  | { readonly kind: 'help' }

/** Reads a running turn from its first event, if its question has this content and none of these IDs. */
export interface ResumeEffect {
  readonly type: 'resume'
  readonly content?: string
  readonly exceptIds: readonly (string | undefined)[]
  /** Message to send if no such turn is running. */
  readonly orSend?: OutgoingMessage
}

/** Work that a step requests from {@link Chat}. */
export type ChatEffect =
  | { readonly type: 'print'; readonly printed: TranscriptPart }
  | { readonly type: 'send'; readonly message: OutgoingMessage }
  | ResumeEffect
  | { readonly type: 'abort' }
  | { readonly type: 'decide'; readonly approvalId: string; readonly decision: Approval['decision'] }
  /** Retries until the runtime responds. */
  | { readonly type: 'wait' }
  | { readonly type: 'stopWaiting' }
  | { readonly type: 'find'; readonly question: string }
  | { readonly type: 'openPassage'; readonly citation: Citation; readonly knownText: string | undefined }
  | { readonly type: 'readImage'; readonly path: string }
  | { readonly type: 'attachFile'; readonly path: string }
  | { readonly type: 'openAttachments' }
  | { readonly type: 'stopFileTask' }
  | { readonly type: 'openTools' }
  | { readonly type: 'loadSuggestions' }
  | { readonly type: 'openChoices'; readonly purpose: ChoicePurpose; readonly search?: string }
  | { readonly type: 'choose'; readonly purpose: NamedPurpose; readonly typed: string }
  | { readonly type: 'loadNames'; readonly purpose: NamedPurpose }
  /** Switches to another version: an item of a list, or a version number of the last question with several versions. */
  | { readonly type: 'useVersion'; readonly version: { readonly id: string; readonly name: string } | number }
  /** Loads an earlier question for editing. */
  | { readonly type: 'loadQuestion'; readonly messageId: string }
  /** Switches to the previous or the next version of the last question with several versions. */
  | { readonly type: 'stepVersion'; readonly by: -1 | 1 }
  | { readonly type: 'rename'; readonly title: string }
  | { readonly type: 'useKnowledgeBases'; readonly chosen: readonly { id: string; name: string }[] }
  /** Continues a conversation; if it is undefined, starts a new one. */
  | {
      readonly type: 'openConversation'
      readonly conversation: { readonly id: string; readonly name: string } | undefined
    }
  | { readonly type: 'copy'; readonly text: string; readonly what: string }
  | { readonly type: 'export'; readonly file: string | undefined }
  | { readonly type: 'redraw' }
  | { readonly type: 'leave' }

/** The state after an event, and the effects to run. */
export type ChatStep = readonly [ChatState, readonly ChatEffect[]]
