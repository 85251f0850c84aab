import type { z } from 'zod'
import type { Access, RootAccess, WorkspaceAccess } from './access.ts'
import type { AuditAction, AuditDetails } from './audit-record.ts'
import type { ErrorCode, WbError } from './errors.ts'
import type { ParamName } from './ids.ts'

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** Names of the `:parameters` of a path. */
export type ParamNames<P extends string> = P extends `${string}:${infer N}/${infer Rest}`
  ? N | ParamNames<`/${Rest}`>
  : P extends `${string}:${infer N}`
    ? N
    : never

type KnownPath<P extends string> = [ParamNames<P>] extends [ParamName] ? P : never

/** Where the workspaces are, and below: no route there can be `open`. @see specification 1 */
type Guarded = `/api/v1/workspaces${string}`

/** Below a workspace only workspace rules exist, elsewhere only root rules. */
type AccessFor<P extends string> =
  'workspaceId' extends ParamNames<P>
    ? WorkspaceAccess
    : P extends Guarded
      ? Exclude<RootAccess, { kind: 'open' }>
      : RootAccess

/** A JSON body. `strict` refuses unknown fields, `lenient` ignores and names them. */
export interface JsonBody<S extends z.ZodType = z.ZodType> {
  readonly kind: 'json'
  readonly schema: S
  readonly mode: 'strict' | 'lenient'
  readonly limitBytes: number
  /** A request without a body is read as one with an empty object. */
  readonly optional?: true
  /** Stands instead of `validation_error` for a body that does not fit. */
  readonly refusal?: ErrorCode
}

/** One JSON value per line, streamed both ways; each line is validated on its own. */
export interface NdjsonBody<S extends z.ZodType = z.ZodType> {
  readonly kind: 'ndjson'
  readonly schema: S
  readonly limitBytes: number
}

export type Body = JsonBody | NdjsonBody

/** One line of an NDJSON body, counted from 1: its value, or why it has none. */
export type Line<T> =
  | { readonly line: number; readonly value: T }
  | { readonly line: number; readonly error: WbError }

/** Reply schemas by status; `null` is an empty body, a text is a media type with a free body. */
export type Replies = { readonly [status: number]: z.ZodType | null | MediaType }
export type MediaType = 'text/html' | 'application/x-ndjson' | 'application/json'

export interface Route<
  P extends string = string,
  Q extends z.ZodType | undefined = z.ZodType | undefined,
  B extends Body | undefined = Body | undefined,
  R extends Replies = Replies,
> {
  readonly method: Method
  readonly path: P
  readonly summary: string
  readonly description?: string
  readonly access: Access
  readonly query?: Q
  readonly body?: B
  readonly replies: R
  readonly errors: readonly ErrorCode[]
  /** What the audit trail records when the route succeeds; its handler gives the details. */
  readonly audit?: AuditAction
  /** Items of the event stream that the route answers instead, to `Accept: text/event-stream`. */
  readonly events?: z.ZodType
}

/**
 * Declare a route. The access rule is mandatory, and a path below a workspace cannot be `open`.
 *
 * Everything else is read off this value: validation, the gate, the OpenAPI document, the typed client.
 */
export function route<
  const P extends string,
  const R extends Replies,
  Q extends z.ZodType | undefined = undefined,
  B extends Body | undefined = undefined,
>(
  declaration: Omit<Route<P, Q, B, R>, 'path' | 'access'> & { path: KnownPath<P>; access: AccessFor<P> },
): Route<P, Q, B, R> {
  return declaration as unknown as Route<P, Q, B, R>
}

/** Routes of one room, by operation name. */
export type Topic = Readonly<Record<string, Route>>

type QueryOf<Q> = Q extends z.ZodType ? z.output<Q> : undefined
type QueryIn<Q> = Q extends z.ZodType ? z.input<Q> : undefined
type BodyOf<B> =
  B extends JsonBody<infer S>
    ? z.output<S>
    : B extends NdjsonBody<infer S>
      ? AsyncIterable<Line<z.output<S>>>
      : undefined
type BodyIn<B> =
  B extends JsonBody<infer S>
    ? z.input<S>
    : B extends NdjsonBody<infer S>
      ? AsyncIterable<z.input<S>>
      : undefined

/** What a handler receives: everything validated. */
export type Input<T> =
  T extends Route<infer P, infer Q, infer B, Replies>
    ? { params: Record<ParamNames<P>, string>; query: QueryOf<Q>; body: BodyOf<B> }
    : never

/** What a client sends. */
export type Request<T> =
  T extends Route<infer P, infer Q, infer B, Replies>
    ? ([ParamNames<P>] extends [never] ? object : { params: Record<ParamNames<P>, string> }) &
        (undefined extends QueryIn<Q> ? object : { query?: QueryIn<Q> }) &
        (B extends undefined
          ? object
          : B extends { optional: true }
            ? { body?: BodyIn<B> }
            : { body: BodyIn<B> })
    : never

/** What a free body is made of: objects that leave one per line, text as it is, or a document that is encoded. */
type Free<M> = M extends 'application/x-ndjson'
  ? AsyncIterable<object>
  : M extends 'text/html'
    ? string
    : object

/** One event of a stream. Its id is what a client sends back as `Last-Event-ID` to go on from there. */
export interface ServerEvent {
  readonly id: string
  readonly event: string
  readonly data: object
}

type Encoded<S> = S extends z.ZodType ? z.input<S> : S extends null ? undefined : Free<S>
type Decoded<S> = S extends z.ZodType ? z.output<S> : S extends null ? undefined : unknown

/** One reply of a handler: its status, its body, and what else the response carries. */
export type Answer<T> =
  T extends Route<string, infer _Q, infer _B, infer R>
    ?
        | {
            [S in keyof R]: {
              status: S
              body: Encoded<R[S]>
              headers?: Record<string, string | readonly string[]>
              ignored?: string[]
              /** For the audit trail, beside the ids of the path. */
              audit?: AuditDetails
            }
          }[keyof R]
        | { status: 200; events: AsyncIterable<ServerEvent> }
    : never

/** What a client gets back: the body of whichever success status came. */
export type Reply<T> =
  T extends Route<string, infer _Q, infer _B, infer R> ? { [S in keyof R]: Decoded<R[S]> }[keyof R] : never
