import type { Passage } from '../../cli/passages/find-passages.ts'
import type { SearchMode } from '../../cli/passages/ranking-options.ts'
import type { QuestionJudgment } from '../../evaluation/judgment-file.ts'
import type { Editor } from '../parts/editor.ts'
import type { Key } from '../parts/keys.ts'
import type { Size } from '../parts/terminal-session.ts'
import type { PlaygroundBase, PlaygroundSearch, SearchResults } from './port.ts'

/** The runtime and workspace to search. Equivalent commands need these details. */
export interface PlaygroundTarget {
  readonly workspaceId: string
  /** Name of the workspace. */
  readonly workspace: string
  /** Origin of the runtime. */
  readonly url: string
  /** True if requests send a credential. */
  readonly hasCredential: boolean
  /** Command-line flags that select the runtime and workspace, as the user typed them. */
  readonly flags: readonly string[]
}

/** Search settings that the user can change. */
export interface PlaygroundSettings {
  readonly mode: SearchMode
  /** Weight of lexical search, from 0 to 1; undefined for the default of the runtime. */
  readonly lexicalWeight: number | undefined
  readonly rerank: boolean
  /** 0 to 1; 0 for none. */
  readonly diversity: number
  /** True to show only the best passage of each document. */
  readonly isGrouped: boolean
  /** Number of chunks to join before and after each passage. */
  readonly neighbors: number
  /** The filter as typed, and as the API accepts it. */
  readonly filter:
    | { readonly text: string; readonly condition: Readonly<Record<string, unknown>> }
    | undefined
  readonly limit: number
}

/** The passages of one request. */
export interface PlaygroundResults extends SearchResults {
  readonly serial: number
  readonly request: PlaygroundSearch
  /** Rank changes by passage ID, compared with the previous results; empty if the question changed. */
  readonly rankChanges: ReadonlyMap<string, number | 'new'>
}

/** A panel that receives keys instead of the question. */
export type PlaygroundPanel =
  | { readonly kind: 'bases'; readonly editor: Editor; readonly selectedIndex: number }
  | { readonly kind: 'filter' | 'limit'; readonly editor: Editor; readonly problem: string }
  | { readonly kind: 'copy'; readonly selectedIndex: number }
  | { readonly kind: 'help'; readonly top: number }

/** State of a playground. */
export interface PlaygroundState {
  readonly target: PlaygroundTarget
  readonly size: Size
  readonly nowMs: number
  readonly bases: readonly PlaygroundBase[]
  readonly base: PlaygroundBase | undefined
  readonly question: Editor
  readonly settings: PlaygroundSettings
  /** True to also show scores as numbers. */
  readonly showsNumbers: boolean
  /** True to explain the rank of the selected passage in a table. */
  readonly showsReasons: boolean
  /** True if letters change settings instead of the question. */
  readonly isInSettings: boolean
  readonly panel: PlaygroundPanel | undefined
  /** Number of the newest request. */
  readonly serial: number
  /** The newest request, until its results arrive. It is sent at `startedMs`, after the typing delay. */
  readonly pending: { readonly request: PlaygroundSearch; readonly startedMs: number } | undefined
  readonly results: PlaygroundResults | undefined
  readonly failure: PlaygroundFailure | undefined
  /** Number of consecutive failed attempts to reach the runtime. */
  readonly failedAttempts: number
  /** Index of the selected passage. */
  readonly selectedIndex: number
  /** True if the selected passage is shown in full. */
  readonly isOpen: boolean
  /** First visible line of the passages. */
  readonly top: number
  /** Grades of judged passages. @see gradeOf */
  readonly grades: ReadonlyMap<string, number>
  readonly notice: string
  /** Text that could not be copied, and is printed when the user leaves. */
  readonly uncopiedText: string | undefined
}

/** An error, as shown to the user. */
export interface PlaygroundFailure {
  readonly isUnavailable: boolean
  readonly code: string | undefined
  readonly message: string
}

/** An event of a playground: a key, or the result of an effect. */
export type PlaygroundEvent =
  | Key
  | { readonly type: 'searched'; readonly serial: number; readonly results: SearchResults }
  | { readonly type: 'failed'; readonly serial: number; readonly failure: PlaygroundFailure }
  | { readonly type: 'listed'; readonly bases: readonly PlaygroundBase[] }
  | { readonly type: 'tick'; readonly nowMs: number }
  | { readonly type: 'resized'; readonly size: Size }
  | { readonly type: 'noted'; readonly text: string }
  | { readonly type: 'notCopied'; readonly text: string; readonly reason: string }

/** Work that a step requests from {@link Playground}. */
export type PlaygroundEffect =
  /** Cancels the current search, and starts one after a delay. */
  | {
      readonly type: 'search'
      readonly serial: number
      readonly request: PlaygroundSearch
      readonly delayMs: number
    }
  | { readonly type: 'stop' }
  | { readonly type: 'list' }
  | { readonly type: 'copy'; readonly text: string; readonly label: string }
  /** Stores a judgment of a passage in a knowledge base. */
  | {
      readonly type: 'judge'
      readonly base: string
      readonly passage: Passage
      readonly judgment: QuestionJudgment
    }
  | { readonly type: 'redraw' }
  | { readonly type: 'leave' }

export type PlaygroundStep = readonly [PlaygroundState, readonly PlaygroundEffect[]]
