import type { RootAccess } from '../contract/access.ts'
import type { AuditDetails } from '../contract/audit-record.ts'
import type { Answer, Input, Topic } from '../contract/route.ts'
import type { Write } from '../storage/rows.ts'
import type { Visibility } from '../storage/visibility.ts'
import type { AuthContext, Creator } from './subject.ts'

/** Where a browser sees the runtime, and what it brought along. */
export interface Site {
  /** Scheme, host and port, as seen from outside the trusted proxies. */
  readonly origin: string
  /** The `Cookie` header. */
  readonly cookies: string | null
}

/** On whose behalf a handler runs, and until when. */
export interface Caller {
  readonly auth: AuthContext
  readonly visibility: Visibility
  /** Aborts when the client goes away. */
  readonly signal: AbortSignal
  readonly requestId: string
  readonly site: Site
  /** Address of the client, behind whatever proxies are trusted; empty within this process. */
  readonly client: string
  /** An event stream was asked for, of what comes after an event's id, or from now on. */
  readonly follows: { readonly after: string | null } | null
  /** Call back when the runtime drains, at once where it does already. Returns a function that calls it off. */
  onDrain(end: () => void): () => void
  /**
   * Whether the same request would be let in by another rule: for routes that tell some callers more than others. Who
   * shows a credential that does not hold, would not.
   */
  wouldPass(rule: RootAccess): Promise<boolean>
  /**
   * Ask again what let the caller in, before something that took its time is made to last.
   *
   * @throws unauthorized, forbidden  the same request would be refused now
   */
  confirm(): Promise<void>
  /**
   * Check what the rule of the route demands for fields that it names; a route whose rule is raised must call it.
   *
   * @throws forbidden  such a field differs, and the caller lacks the scope for that
   */
  checkChange(before: object, after: object): void
  /**
   * Checks the access rule of the route for a record with a known creator. A route with an `own` rule must call it before
   * it does anything else.
   *
   * @throws forbidden  another caller created the record, and the caller lacks the scope for that
   */
  checkCreator(creator: Creator): void
  /**
   * The audit record of this request, to be part of the unit that changes something: the one is not kept without the
   * other. Where a handler does not ask for it, it is written afterwards.
   */
  record(details: AuditDetails, workspaceId?: string): Write
  /**
   * The audit record of a change, to be part of its unit, where the route declares one for a field that becomes
   * another; a route that declares fields must call it with every change.
   */
  recordChange(before: object, after: object, details: AuditDetails): Write[]
}

/** The handlers of a topic: a missing or misspelt operation does not compile. */
export type Handlers<T extends Topic> = {
  [K in keyof T]: (input: Input<T[K]>, caller: Caller) => Promise<Answer<T[K]>> | Answer<T[K]>
}
