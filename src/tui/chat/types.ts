import type { ChatSubject } from '../../cli/chat/chat-interfaces.ts'
import type { ChoiceItem, NamedImage, OutgoingMessage } from '../../cli/chat/port.ts'
import type { Passage } from '../../cli/passages/find-passages.ts'
import type { Approval, Citation, ToolCall, ToolOutcome, TurnEvent } from '../../contract/chat.ts'
import type { Message } from '../../contract/conversations.ts'
import type { Block, BlockReader } from '../markdown/blocks.ts'
import type { Editor } from '../parts/editor.ts'
import type { Key } from '../parts/keys.ts'
import type { Size } from '../parts/terminal-session.ts'

/** A tool call, and its result once it has finished. */
export interface ToolRun {
  /** Number for `/expand`, from 1. */
  readonly number: number
  readonly call: ToolCall
  readonly startedMs: number
  readonly result?: { readonly content: string; readonly outcome: ToolOutcome; readonly durationMs: number }
}

/** A tool call that waits for approval. */
export interface PendingApproval {
  readonly approvalId: string
  readonly call: ToolCall
  readonly expiresMs: number
  readonly requestedMs: number
}

/** A sent message, and the answer so far. */
export interface Turn {
  readonly message: OutgoingMessage
  /** Undefined until the runtime has stored the message. */
  readonly messageId: string | undefined
  /** ID of the question that precedes the message. */
  readonly previousQuestionId: string | undefined
  /** The last question and answer before the message was sent. */
  readonly previousExchange: LastExchange
  readonly startedMs: number
  /** Reader of the answer. It contains the part that is not printed yet. */
  readonly reader: BlockReader
  /** Text of the answer so far. */
  readonly text: string
  /** Reasoning in progress; undefined while the model does not reason. */
  readonly reasoning: { readonly text: string; readonly startedMs: number } | undefined
  /** True once the agent's name has been printed. */
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
  /** True if `answer` is the answer to `question`; false if it is the answer to an earlier question. */
  readonly isAnswered: boolean
  /** Reasoning of the last turn; empty if there was none. */
  readonly reasoning: string
  /** Passages of this and earlier answers, in order of their numbers. */
  readonly citations: readonly Citation[]
  /** Texts of the found passages, by chunk ID. */
  readonly texts: Readonly<Record<string, string>>
}

/** State of the composer, the field for the next message. */
export interface ComposerState {
  readonly editor: Editor
  /** Sent lines, oldest first. */
  readonly sentLines: readonly string[]
  /** The sent line that is shown in the field, and the draft that it replaced. */
  readonly recalled: { readonly index: number; readonly draft: Editor } | undefined
  /** Search in the sent lines: the query, the index of the match, and the draft that it replaced. */
  readonly search: { readonly query: string; readonly index: number; readonly draft: Editor } | undefined
  /** The completion that is shown in the field. */
  readonly completion:
    | {
        readonly candidates: {
          readonly before: string
          readonly words: readonly string[]
          readonly after: string
        }
        readonly index: number
      }
    | undefined
  /** ID of the earlier message that the next message replaces. */
  readonly replaces: string | undefined
}

/** Content of a list; `kb` means knowledge bases. */
export type ChoicePurpose = 'model' | 'kb' | 'history' | 'versions' | 'questions'
/** Lists whose items can be chosen by typing their names. */
export type NamedPurpose = Exclude<ChoicePurpose, 'history' | 'versions' | 'questions'>

/** A list to choose from. */
export interface ChoicePanel {
  readonly kind: 'choice'
  readonly purpose: ChoicePurpose
  readonly title: string
  readonly items: readonly ChoiceItem[]
  /** Index of the row with the cursor. */
  readonly selectedIndex: number
  /**
   * True if knowledge bases were chosen by name. If the user chose all of them this way, the choice does not include
   * knowledge bases that are created later.
   */
  readonly isNamed?: boolean
}

/** Content of a panel that shows text. */
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

/** State of a chat, without the parts of the conversation that have already been printed. */
export interface ChatState {
  readonly subject: ChatSubject
  readonly size: Size
  readonly nowMs: number
  readonly input: ComposerState
  /** Images of the next question. */
  readonly images: readonly NamedImage[]
  /** Current task on a file, such as `attaching day.md`. Questions cannot be sent until it ends. */
  readonly fileTask: string | undefined
  readonly turn: Turn | undefined
  /** Messages to send after the current turn, in order. */
  readonly queue: readonly OutgoingMessage[]
  /** Set while the runtime is unreachable. `unsentMessage` is sent when it is available again. */
  readonly outage:
    | {
        readonly unsentMessage: OutgoingMessage | undefined
        readonly previousQuestionId?: string
        /** The question whose answer was interrupted. */
        readonly unansweredQuestion?: { readonly message: OutgoingMessage; readonly messageId: string }
      }
    | undefined
  readonly lastExchange: LastExchange
  readonly toolRuns: readonly ToolRun[]
  readonly llmServiceId: string | undefined
  readonly temperature: number | undefined
  /** Number of tokens of the last request and its answer, and the size of the model's context window. */
  readonly context: { readonly tokens: number; readonly window: number } | undefined
  /** Name of the chosen model, or of the model of the last answer; undefined if unknown, null if there is no model. */
  readonly model: string | null | undefined
  readonly panel: ChatPanel | undefined
  /** Names that can be completed; absent until they are loaded. */
  readonly names: Partial<Record<NamedPurpose, readonly string[]>>
  /** Total usage of this chat; `costUsd` is undefined if no provider has reported a cost. */
  readonly usage: { readonly tokens: number; readonly costUsd: number | undefined }
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
  readonly nextSteps: readonly string[]
}

/** An event of a chat: a key, or the result of an effect. */
export type ChatEvent =
  | Key
  | {
      readonly type: 'turn'
      readonly event: TurnEvent
      /** Passages that an answer used; only set if it cites none. */
      readonly usedPassages?: readonly Citation[]
    }
  | { readonly type: 'suggestionsLoaded'; readonly questions: readonly string[] }
  | { readonly type: 'failed'; readonly failure: ChatFailure }
  | { readonly type: 'connection'; readonly isLost: boolean }
  /** The chat has started to read a running turn. The events of the turn follow, starting with the first. */
  | { readonly type: 'turnResumed'; readonly question: Message }
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
  /** The current task on a file succeeded or failed. */
  | { readonly type: 'fileTaskEnded' }
  | { readonly type: 'note'; readonly text: string; readonly isError: boolean }
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
  | {
      readonly kind: 'answer'
      readonly block: Block
      readonly isFirst: boolean
      /** True for text that precedes a tool call and is not part of the answer. */
      readonly isAside: boolean
      /** Sentences of the answer to dim, in Markdown. Only known when the answer is complete. */
      readonly dimmed?: readonly string[]
    }
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
      /** True to show how to set up a model. */
      readonly hasSetup: boolean
    }
  /** Sentences of an answer that no source supports, in Markdown. */
  | { readonly kind: 'unsupported'; readonly sentences: readonly string[] }
  | { readonly kind: 'note'; readonly text: string; readonly tone: 'dim' | 'good' | 'bad' }
  | { readonly kind: 'help' }

/** Reads a running turn from its first event. */
export interface ResumeEffect {
  readonly type: 'resume'
  /** Content that the question of the turn must have; any content if undefined. */
  readonly content?: string
  /** IDs that the question of the turn must not have. */
  readonly excludedIds: readonly (string | undefined)[]
  /** Message to send if no such turn is running. */
  readonly fallbackMessage?: OutgoingMessage
}

/** Work that a step requests from {@link Chat}. */
export type ChatEffect =
  | { readonly type: 'print'; readonly part: TranscriptPart }
  | { readonly type: 'send'; readonly message: OutgoingMessage }
  | ResumeEffect
  | { readonly type: 'abort' }
  | { readonly type: 'decide'; readonly approvalId: string; readonly decision: Approval['decision'] }
  /** Sends requests until the runtime responds. */
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
  | { readonly type: 'choose'; readonly purpose: NamedPurpose; readonly input: string }
  | { readonly type: 'loadNames'; readonly purpose: NamedPurpose }
  /** Switches to another version: a list item, or a version number of the last question that has several versions. */
  | { readonly type: 'useVersion'; readonly version: { readonly id: string; readonly name: string } | number }
  /** Loads an earlier question for editing. */
  | { readonly type: 'loadQuestion'; readonly messageId: string }
  /** Switches to the previous or next version of the last question that has several versions. */
  | { readonly type: 'stepVersion'; readonly offset: -1 | 1 }
  | { readonly type: 'rename'; readonly title: string }
  | { readonly type: 'useKnowledgeBases'; readonly knowledgeBases: readonly { id: string; name: string }[] }
  /** Continues a conversation; starts a new one if `conversation` is undefined. */
  | {
      readonly type: 'openConversation'
      readonly conversation: { readonly id: string; readonly name: string } | undefined
    }
  | { readonly type: 'copy'; readonly text: string; readonly label: string }
  | { readonly type: 'export'; readonly file: string | undefined }
  | { readonly type: 'redraw' }
  | { readonly type: 'leave' }

/** The state after an event, and the effects to run. */
export type ChatStep = readonly [ChatState, readonly ChatEffect[]]
