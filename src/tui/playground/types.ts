import type { SearchMode } from '../../cli/passages/request.ts'
import type { Editor } from '../parts/editor.ts'
import type { Key } from '../parts/keys.ts'
import type { Size } from '../parts/terminal-session.ts'
import type { PlaygroundBase, PlaygroundSearch, SearchResults } from './port.ts'

/** The runtime and workspace, as equivalent commands name them. */
export interface PlaygroundAbout {
  readonly workspaceId: string
  readonly workspace: string
  /** Origin of the runtime. */
  readonly url: string
  /** Requests carry a credential. */
  readonly hasCredential: boolean
  /** Flags for runtime and workspace, as they were typed. */
  readonly flags: readonly string[]
}

/** Ranking and filter. */
export interface PlaygroundSettings {
  readonly mode: SearchMode
  /** Weight of lexical search, from 0 to 1; undefined for the default of the runtime. */
  readonly lexicalWeight: number | undefined
  readonly rerank: boolean
  /** The filter as it was typed, and as the API takes it. */
  readonly filter:
    | { readonly text: string; readonly condition: Readonly<Record<string, unknown>> }
    | undefined
  readonly limit: number
}

/** The passages of one request. */
export interface PlaygroundAnswer extends SearchResults {
  readonly serial: number
  readonly request: PlaygroundSearch
  /** Change of rank by passage ID since the last settings; empty for another question. */
  readonly moves: ReadonlyMap<string, number | 'new'>
}

/** Input in place of the question. */
export type PlaygroundPanel =
  | { readonly kind: 'bases'; readonly editor: Editor; readonly at: number }
  | { readonly kind: 'filter' | 'limit'; readonly editor: Editor; readonly problem: string }
  | { readonly kind: 'copy'; readonly at: number }
  | { readonly kind: 'help'; readonly top: number }

/** State of a playground. */
export interface PlaygroundState {
  readonly about: PlaygroundAbout
  readonly size: Size
  readonly nowMs: number
  readonly bases: readonly PlaygroundBase[]
  readonly base: PlaygroundBase | undefined
  readonly question: Editor
  readonly settings: PlaygroundSettings
  /** Shows scores as numbers, too. */
  readonly hasNumbers: boolean
  /** Letters change settings, and are not added to the question. */
  readonly isSetting: boolean
  readonly panel: PlaygroundPanel | undefined
  /** Number of the newest request. */
  readonly serial: number
  /** The newest request, until it is answered. */
  readonly pending: { readonly request: PlaygroundSearch; readonly sinceMs: number } | undefined
  readonly answer: PlaygroundAnswer | undefined
  readonly failure: PlaygroundFailure | undefined
  /** Number of failed attempts to reach the runtime. */
  readonly tries: number
  /** Index of the selected passage, and whether it is shown in full. */
  readonly at: number
  readonly isOpen: boolean
  /** First visible line of the passages. */
  readonly top: number
  readonly notice: string
  /** Text that could not be copied, and is printed at the end. */
  readonly uncopied: string | undefined
}

/** An error in words for the user. */
export interface PlaygroundFailure {
  readonly isUnavailable: boolean
  readonly code: string | undefined
  readonly message: string
}

/** An event of a playground: a key, or news from the runtime. */
export type PlaygroundEvent =
  | Key
  | { readonly type: 'answered'; readonly serial: number; readonly found: SearchResults }
  | { readonly type: 'failed'; readonly serial: number; readonly failure: PlaygroundFailure }
  | { readonly type: 'listed'; readonly bases: readonly PlaygroundBase[] }
  | { readonly type: 'tick'; readonly nowMs: number }
  | { readonly type: 'resized'; readonly size: Size }
  | { readonly type: 'noted'; readonly text: string }
  | { readonly type: 'notCopied'; readonly text: string; readonly why: string }

/** Work for {@link Playground}, which the state only asks for. */
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
  | { readonly type: 'copy'; readonly text: string; readonly what: string }
  | { readonly type: 'redraw' }
  | { readonly type: 'leave' }

export type PlaygroundStep = readonly [PlaygroundState, readonly PlaygroundEffect[]]
