import type { About } from '../../cli/chat/front.ts'
import type { Choice, NamedImage, Say } from '../../cli/chat/port.ts'
import type { Passage } from '../../cli/passages/hits.ts'
import type { Approval, Citation, ToolCall, ToolOutcome, TurnEvent } from '../../contract/chat.ts'
import type { Message } from '../../contract/conversations.ts'
import type { Block, Reader } from '../markdown/blocks.ts'
import type { Editor } from '../parts/editor.ts'
import type { Key } from '../parts/keys.ts'
import type { Size } from '../parts/screen.ts'

/** A call of a tool, as it goes on or as it went. */
export interface ToolRun {
  /** To open it by, from 1 on in what is on the screen. */
  readonly number: number
  readonly call: ToolCall
  readonly sinceMs: number
  readonly result?: { readonly content: string; readonly outcome: ToolOutcome; readonly durationMs: number }
}

/** A tool that waits for a person. */
export interface Pending {
  readonly approvalId: string
  readonly call: ToolCall
  readonly expiresMs: number
  readonly sinceMs: number
}

/** A message that is on its way, and what came back. */
export interface Turn {
  readonly say: Say
  /** Of the message as it was stored; undefined until the runtime has it. */
  readonly messageId: string | undefined
  /** The message of the person before it. */
  readonly afterId: string | undefined
  /** The last question and answer before the message was sent. */
  readonly before: Last
  readonly sinceMs: number
  /** What is not on the screen for good. */
  readonly reader: Reader
  readonly text: string
  /** Reasoning in progress; undefined while the model does not reason. */
  readonly thought: { readonly text: string; readonly sinceMs: number } | undefined
  /** The name of the agent stands above what it said. */
  readonly isHeaded: boolean
  /** A tool ran since the agent last said something. */
  readonly isApart: boolean
  /** The connection broke, and the turn is about to be read again. */
  readonly isReconnecting: boolean
  readonly running: readonly ToolRun[]
  readonly pending: readonly Pending[]
}

/** A message of the person. */
export interface Question {
  readonly content: string
  readonly messageId: string | undefined
  readonly images?: readonly NamedImage[]
  /** Images of a question that this chat did not send; it has no data of them. */
  readonly storedImages?: Message['images']
}

/** What was said last, for commands that speak of it. */
export interface Last {
  readonly question: Question | undefined
  readonly answer: string
  /** True if the answer belongs to this question, not to an earlier one. */
  readonly isAnswered: boolean
  /** Reasoning of the last turn; empty if there was none. */
  readonly thoughts: string
  /** Of this and earlier answers, by number. */
  readonly citations: readonly Citation[]
  /** Of passages that were found, by id of the chunk. */
  readonly texts: Readonly<Record<string, string>>
}

/** The field that a person types in. */
export interface Input {
  readonly editor: Editor
  /** What was sent, the oldest first. */
  readonly past: readonly string[]
  /** Which of them is in the field, and what stood there before. */
  readonly recalled: { readonly at: number; readonly draft: Editor } | undefined
  readonly search: { readonly query: string; readonly at: number; readonly draft: Editor } | undefined
  /** Which of the words that would fit is in the field. */
  readonly completion:
    | {
        readonly offer: { readonly before: string; readonly words: readonly string[]; readonly after: string }
        readonly at: number
      }
    | undefined
  /** The message that the one in the field stands for when it is sent. */
  readonly replaces: string | undefined
}

/** What a person chooses in a list that fills the screen. */
export type Purpose = 'model' | 'kb' | 'history' | 'versions' | 'questions'
/** Those that may be chosen by a name that is typed. */
export type Named = Exclude<Purpose, 'history' | 'versions' | 'questions'>

export interface ChoicePanel {
  readonly kind: 'choice'
  readonly purpose: Purpose
  readonly title: string
  readonly items: readonly Choice[]
  readonly at: number
  /** Knowledge bases were named one by one: those that are all today do not stand for whatever there will be. */
  readonly isNamed?: boolean
}

/** A text that fills the screen. */
export interface Page {
  readonly text: string
  readonly format: 'markdown' | 'plain'
}

/** What fills the screen for a while. */
export type Panel =
  | {
      readonly kind: 'text'
      readonly title: string
      readonly page: Page
      /** Line at the top of the screen. */
      readonly top: number
    }
  | ChoicePanel

/** All that a chat knows; what is on the screen for good is not in it. */
export interface State {
  readonly about: About
  readonly size: Size
  readonly nowMs: number
  readonly input: Input
  /** Sent with the next question. */
  readonly images: readonly NamedImage[]
  /** Work on a file, such as `attaching day.md`; questions wait for its end. */
  readonly fileTask: string | undefined
  readonly turn: Turn | undefined
  /** The runtime is away; a message that did not reach it waits. */
  readonly away:
    | {
        readonly waiting: Say | undefined
        readonly afterId?: string
        /** The question whose answer was lost. */
        readonly lost?: { readonly say: Say; readonly messageId: string }
      }
    | undefined
  readonly last: Last
  readonly runs: readonly ToolRun[]
  readonly llmServiceId: string | undefined
  readonly temperature: number | undefined
  /** Tokens of the last request and its answer, and the context window of the model. */
  readonly context: { readonly tokens: number; readonly window: number } | undefined
  /** The one that answered last, or was chosen since; undefined until that is known, null where none answers. */
  readonly model: string | null | undefined
  readonly panel: Panel | undefined
  /** What a line may be completed with; empty until the runtime has said. */
  readonly names: Partial<Record<Named, readonly string[]>>
  readonly spent: { readonly tokens: number; readonly costUsd: number | undefined }
  /** Ctrl-C was pressed, and leaves when pressed again. */
  readonly isLeaving: boolean
  readonly notice: string
}

/** What went wrong, in the words of an error. */
export interface Failure {
  readonly kind: 'unreachable' | 'refused'
  readonly code: string
  readonly message: string
  /** Lines to type or to know. */
  readonly next: readonly string[]
}

/** What may happen to a chat. */
export type Event =
  | Key
  | { readonly type: 'turn'; readonly event: TurnEvent }
  | { readonly type: 'failed'; readonly failure: Failure }
  | { readonly type: 'connection'; readonly isLost: boolean }
  /** A running turn was found, and its events follow from the first one. */
  | { readonly type: 'attached'; readonly question: Message }
  | { readonly type: 'tick'; readonly nowMs: number }
  | { readonly type: 'resized'; readonly size: Size }
  | { readonly type: 'reconnected'; readonly said: readonly Message[] }
  | { readonly type: 'found'; readonly passages: readonly Passage[] }
  | { readonly type: 'opened'; readonly panel: Panel }
  /** By names, of a list that was not shown. */
  | { readonly type: 'chose'; readonly panel: ChoicePanel }
  | { readonly type: 'named'; readonly of: Named; readonly names: readonly string[] }
  | {
      readonly type: 'resumed'
      readonly said: readonly Message[]
      readonly title: string
      /** Shows the messages from this one on; the last ones if absent. */
      readonly fromId?: string
      /** Names of the knowledge bases of the conversation; unchanged if absent. */
      readonly knowledgeBases?: readonly string[]
    }
  | { readonly type: 'based'; readonly knowledgeBases: readonly string[] }
  /** A question of the conversation is put into the field, to be edited. */
  | { readonly type: 'editing'; readonly question: Question }
  | { readonly type: 'imageRead'; readonly image: NamedImage }
  /** The work on a file succeeded or failed. */
  | { readonly type: 'fileTaskEnded' }
  | { readonly type: 'noted'; readonly text: string; readonly isBad: boolean }
  /** A whole line, from who types where no key is seen. */
  | { readonly type: 'submitted'; readonly text: string }

/** What is on the screen for good. */
export type Printed =
  | {
      readonly kind: 'you'
      readonly text: string
      /** A line for each image. */
      readonly images?: readonly string[]
    }
  | { readonly kind: 'said'; readonly block: Block; readonly isFirst: boolean; readonly isAside: boolean }
  | { readonly kind: 'tool'; readonly run: ToolRun }
  | { readonly kind: 'sources'; readonly citations: readonly Citation[] }
  | {
      readonly kind: 'found'
      readonly question: string
      readonly passages: readonly Passage[]
      /** How to come by a model is told as well. */
      readonly hasWays: boolean
    }
  | { readonly kind: 'note'; readonly text: string; readonly tone: 'dim' | 'good' | 'bad' }
  | { readonly kind: 'help' }

/** Reads a running turn from its first event, if it is one of this content and not one of these questions. */
export interface Resume {
  readonly type: 'resume'
  readonly content?: string
  readonly exceptIds: readonly (string | undefined)[]
  /** Sent if no such turn is running. */
  readonly orSend?: Say
}

/** What a chat wants done, which the state itself does not do. */
export type Effect =
  | { readonly type: 'print'; readonly printed: Printed }
  | { readonly type: 'send'; readonly say: Say }
  | Resume
  | { readonly type: 'abort' }
  | { readonly type: 'decide'; readonly approvalId: string; readonly decision: Approval['decision'] }
  /** Ask the runtime again and again until it is back. */
  | { readonly type: 'wait' }
  | { readonly type: 'stopWaiting' }
  | { readonly type: 'find'; readonly question: string }
  | { readonly type: 'openPassage'; readonly citation: Citation; readonly known: string | undefined }
  | { readonly type: 'readImage'; readonly path: string }
  | { readonly type: 'attachFile'; readonly path: string }
  | { readonly type: 'openAttachments' }
  | { readonly type: 'stopFileTask' }
  | { readonly type: 'openTools' }
  | { readonly type: 'openChoices'; readonly purpose: Purpose; readonly search?: string }
  | { readonly type: 'choose'; readonly of: Named; readonly typed: string }
  | { readonly type: 'loadNames'; readonly of: Named }
  /** Goes back to another version of a question: by item, or of the last one with versions by number. */
  | { readonly type: 'useVersion'; readonly version: { readonly id: string; readonly name: string } | number }
  /** Reads an earlier question to edit. */
  | { readonly type: 'loadQuestion'; readonly messageId: string }
  /** Goes to the version before or after the current one of the last question with versions. */
  | { readonly type: 'stepVersion'; readonly by: -1 | 1 }
  | { readonly type: 'rename'; readonly title: string }
  | { readonly type: 'useKnowledgeBases'; readonly chosen: readonly { id: string; name: string }[] }
  /** Go on with a conversation, or begin one. */
  | {
      readonly type: 'goOn'
      readonly conversation: { readonly id: string; readonly name: string } | undefined
    }
  | { readonly type: 'copy'; readonly text: string; readonly what: string }
  | { readonly type: 'export'; readonly file: string | undefined }
  | { readonly type: 'redraw' }
  | { readonly type: 'leave' }

export type Step = readonly [State, readonly Effect[]]
