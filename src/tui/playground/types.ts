import type { Mode } from '../../cli/passages/request.ts'
import type { Editor } from '../parts/editor.ts'
import type { Key } from '../parts/keys.ts'
import type { Size } from '../parts/screen.ts'
import type { Asked, Base, Found } from './port.ts'

/** Where it searches, as far as commands that do the same have to say it. */
export interface About {
  readonly workspaceId: string
  readonly workspace: string
  /** Origin of the runtime. */
  readonly url: string
  /** Something is sent that says who is calling. */
  readonly hasCredential: boolean
  /** Flags that name runtime and workspace, as they were typed. */
  readonly flags: readonly string[]
}

/** How passages are ranked and which are left out. */
export interface Settings {
  readonly mode: Mode
  /** Share of the words; undefined leaves it to the runtime. */
  readonly lexicalWeight: number | undefined
  readonly rerank: boolean
  /** As it was typed, and what it means; undefined is none. */
  readonly filter:
    | { readonly text: string; readonly condition: Readonly<Record<string, unknown>> }
    | undefined
  readonly limit: number
}

/** The passages of one request. */
export interface Answer extends Found {
  readonly serial: number
  readonly asked: Asked
  /** Places that each passage moved up since the same question was asked otherwise, by id; empty for another question. */
  readonly moves: ReadonlyMap<string, number | 'new'>
}

/** What a person writes or chooses in place of the question. */
export type Panel =
  | { readonly kind: 'bases'; readonly editor: Editor; readonly at: number }
  | { readonly kind: 'filter' | 'limit'; readonly editor: Editor; readonly problem: string }
  | { readonly kind: 'copy'; readonly at: number }
  | { readonly kind: 'help'; readonly top: number }

/** All that a playground knows. */
export interface State {
  readonly about: About
  readonly size: Size
  readonly nowMs: number
  readonly bases: readonly Base[]
  readonly base: Base | undefined
  readonly question: Editor
  readonly settings: Settings
  /** Scores are told as numbers too. */
  readonly hasNumbers: boolean
  /** Letters go to the settings, and not into the question. */
  readonly isSetting: boolean
  readonly panel: Panel | undefined
  /** Of the newest request. */
  readonly serial: number
  /** The newest request, until it is answered. */
  readonly asking: { readonly asked: Asked; readonly sinceMs: number } | undefined
  readonly answer: Answer | undefined
  readonly failure: Failure | undefined
  /** How often the runtime did not answer, one time after the other. */
  readonly tries: number
  /** The passage that is chosen, and whether it is shown whole. */
  readonly at: number
  readonly isOpen: boolean
  /** Line of the passages that is the first on the screen. */
  readonly top: number
  readonly notice: string
  /** What could not be copied, and is printed when the person leaves. */
  readonly kept: string | undefined
}

/** What went wrong, in the words of an error. */
export interface Failure {
  readonly isAway: boolean
  readonly code: string | undefined
  readonly message: string
}

/** What may happen to a playground. */
export type Event =
  | Key
  | { readonly type: 'answered'; readonly serial: number; readonly found: Found }
  | { readonly type: 'failed'; readonly serial: number; readonly failure: Failure }
  | { readonly type: 'listed'; readonly bases: readonly Base[] }
  | { readonly type: 'tick'; readonly nowMs: number }
  | { readonly type: 'resized'; readonly size: Size }
  | { readonly type: 'noted'; readonly text: string }
  | { readonly type: 'notCopied'; readonly text: string; readonly why: string }

/** What a playground wants done, which the state itself does not do. */
export type Effect =
  /** Ask after a while, unless something else is asked until then; what is asked at the moment is called off. */
  | { readonly type: 'search'; readonly serial: number; readonly asked: Asked; readonly delayMs: number }
  | { readonly type: 'stop' }
  | { readonly type: 'list' }
  | { readonly type: 'copy'; readonly text: string; readonly what: string }
  | { readonly type: 'redraw' }
  | { readonly type: 'leave' }

export type Step = readonly [State, readonly Effect[]]
