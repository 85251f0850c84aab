import type { RootAccess } from '../contract/access.ts'
import type { AuditDetails } from '../contract/audit-record.ts'
import type { HandlerInput, HandlerReply, Topic } from '../contract/route.ts'
import type { Write } from '../storage/rows.ts'
import type { RowAccess } from './row-access.ts'
import type { AuthContext, Creator } from './subject.ts'

/** The origin at which a browser reaches the runtime, and the cookies that the browser sent. */
export interface BrowserSite {
  /** Scheme, host and port that the client used, as reported by trusted proxies. */
  readonly origin: string
  /** Value of the `Cookie` header. */
  readonly cookies: string | null
}

/** Caller of a request, as passed to handlers. */
export interface Caller {
  readonly auth: AuthContext
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal
  readonly requestId: string
  readonly site: BrowserSite
  /** IP address of the client, as reported by trusted proxies; empty for requests of this process. */
  readonly client: string
  /**
   * The event stream that the client requested; null if it did not request a stream. `after` is the ID of the event
   * after which to start; null to start with the next event.
   */
  readonly follows: { readonly after: string | null } | null
  /**
   * Returns what the caller may see in a workspace now.
   *
   * @throws workspace_not_found
   */
  rowAccess(workspaceId: string): Promise<RowAccess>
  /**
   * Calls `end` when the runtime starts to drain, or immediately if it is already draining. Returns a function
   * that removes the callback.
   */
  onDrain(end: () => void): () => void
  /**
   * Returns true if another rule would allow this request; false if not, or if the credential is invalid. For routes
   * that return more data to some callers.
   */
  can(rule: RootAccess): Promise<boolean>
  /**
   * Authorizes the caller again, and updates `auth`. Call it before a slow operation stores its result.
   *
   * @throws unauthorized, forbidden  when the same request would now be rejected
   */
  reauthorize(): Promise<void>
  /**
   * Checks that the caller may make a change, if the access rule of the route requires an extra scope to change certain
   * fields. A route with such a rule must call this function.
   *
   * @throws forbidden  when such a field changes and the caller lacks the scope
   */
  checkChange(before: object, after: object): void
  /**
   * Checks the access rule of the route for a record with a known creator. A route with an `ownRecords` rule must call
   * this function before it does anything else.
   *
   * @throws forbidden  when another caller created the record, and this caller lacks the required scope
   */
  checkCreator(creator: Creator): void
  /**
   * Returns the write for this request's audit record, to include in the transaction of the change. If the handler
   * does not call it, the record is written after the request.
   */
  record(details: AuditDetails, workspaceId?: string): Write
  /**
   * Like {@link record}, for routes that audit only changes to certain fields. Returns an empty list if none of these
   * fields changed. Such a route must call this function for every change.
   */
  recordChange(before: object, after: object, details: AuditDetails): Write[]
}

/** Handlers of a topic; a missing or misspelled operation is a compile error. */
export type Handlers<T extends Topic> = {
  [K in keyof T]: (
    input: HandlerInput<T[K]>,
    caller: Caller,
  ) => Promise<HandlerReply<T[K]>> | HandlerReply<T[K]>
}
