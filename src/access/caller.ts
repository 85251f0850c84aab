import type { Answer, Input, Topic } from '../contract/route.ts'
import type { Visibility } from '../storage/visibility.ts'
import type { AuthContext } from './subject.ts'

/** On whose behalf a handler runs, and until when. */
export interface Caller {
  readonly auth: AuthContext
  readonly visibility: Visibility
  /** Aborts when the client goes away or the runtime gives up waiting. */
  readonly signal: AbortSignal
  readonly requestId: string
}

/** The handlers of a topic: a missing or misspelt operation does not compile. */
export type Handlers<T extends Topic> = {
  [K in keyof T]: (input: Input<T[K]>, caller: Caller) => Promise<Answer<T[K]>> | Answer<T[K]>
}
