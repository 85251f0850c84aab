import type { SearchMode } from '../../cli/passages/ranking-options.ts'
import type { Editor } from '../parts/editor.ts'
import type { Key } from '../parts/keys.ts'
import type { Size } from '../parts/terminal-session.ts'
import type { PlaygroundBase, PlaygroundSearch, SearchResults } from './port.ts'

/** The runtime and workspace to search, for equivalent commands. */
export interface PlaygroundTarget {
  readonly workspaceId: string
  readonly workspace: string
  /** Origin of the runtime. */
  readonly url: string
  /** True if requests send a credential. */
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
  /** Rank changes by passage ID, compared with the results before; empty if the question changed. */
  readonly moves: ReadonlyMap<string, number | 'new'>
}

/** A panel that takes input instead of the question. */
export type PlaygroundPanel =
  | { readonly kind: 'bases'; readonly editor: Editor; readonly at: number }
  | { readonly kind: 'filter' | 'limit'; readonly editor: Editor; readonly problem: string }
  | { readonly kind: 'copy'; readonly at: number }
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
  /** True if letters change settings instead of the question. */
  readonly isInSettings: boolean
  readonly panel: PlaygroundPanel | undefined
  /** Number of the newest request. */
  readonly serial: number
  /** The newest request, until its results arrive. */
  readonly pending: { readonly request: PlaygroundSearch; readonly sinceMs: number } | undefined
  readonly results: PlaygroundResults | undefined
  readonly failure: PlaygroundFailure | undefined
  /** Number of failed attempts to reach the runtime. */
  readonly tries: number
  /** Index of the selected passage. */
  readonly at: number
  /** True if the selected passage is shown in full. */
  readonly isOpen: boolean
  /** First visible line of the passages. */
  readonly top: number
  readonly notice: string
  /** Text that could not be copied, and is printed when the user leaves. */
  readonly uncopied: string | undefined
}

/** An error, as shown to the user. */
export interface PlaygroundFailure {
  readonly isUnavailable: boolean
  readonly code: string | undefined
  readonly message: string
}

/** An event of a playground: a key, or a message from the runtime. */
export type PlaygroundEvent =
  | Key
  | { readonly type: 'searched'; readonly serial: number; readonly results: SearchResults }
  | { readonly type: 'failed'; readonly serial: number; readonly failure: PlaygroundFailure }
  | { readonly type: 'listed'; readonly bases: readonly PlaygroundBase[] }
  | { readonly type: 'tick'; readonly nowMs: number }
  | { readonly type: 'resized'; readonly size: Size }
  | { readonly type: 'noted'; readonly text: string }
  | { readonly type: 'notCopied'; readonly text: string; readonly why: string }

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
  | { readonly type: 'copy'; readonly text: string; readonly what: string }
  | { readonly type: 'redraw' }
  | { readonly type: 'leave' }

export type PlaygroundStep = readonly [PlaygroundState, readonly PlaygroundEffect[]]
