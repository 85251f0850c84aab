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

/** Where the workspaces are, and below: no route there can be `open`. @see docs/requirements.md#S1-02 */
type Guarded = `/api/v1/workspaces${string}`

/** What sets the runtime up has a rule of its own, which stands nowhere else. */
type Setup = Extract<RootAccess, { kind: 'setup' }>

/** Below a workspace only workspace rules exist, elsewhere only root rules. */
type AccessFor<P extends string> =
  'workspaceId' extends ParamNames<P>
    ? WorkspaceAccess
    : P extends Guarded
      ? Exclude<RootAccess, Setup | { kind: 'open' }>
      : P extends `/setup/${string}`
        ? Setup
        : Exclude<RootAccess, Setup>

/** A JSON body. `strict` refuses unknown fields, `lenient` ignores and names them. */
export interface JsonBody<S extends z.ZodType = z.ZodType> {
  readonly kind: 'json'
  readonly schema: S
  readonly mode: 'strict' | 'lenient'
  readonly limitBytes: number
  /** Stands instead of `validation_error` for a body that does not fit. */
  readonly refusal?: ErrorCode
}

/** One JSON value per line, streamed both ways; each line is validated on its own. */
export interface NdjsonBody<S extends z.ZodType = z.ZodType> {
  readonly kind: 'ndjson'
  readonly schema: S
  readonly limitBytes: number
}

/** A form with a file in the part `file`, and texts beside it. It is received when the handler asks for it. */
export interface MultipartBody<S extends z.ZodObject = z.ZodObject> {
  readonly kind: 'multipart'
  /** Of the texts, by the name of their part; unknown parts are ignored and named. */
  readonly schema: S
  /** Parts that hold JSON; the schema is given what cannot be read as JSON as the text that it is. */
  readonly json: readonly string[]
  /** Of the whole form. */
  readonly limitBytes: number
}

export type Body = JsonBody | NdjsonBody | MultipartBody

/** Returns true if an empty body is read as `{}`, because no field is required. */
export function canBeEmpty({ kind, schema }: Body): boolean {
  return kind === 'json' && schema.type === 'object' && schema.safeParse({}).success
}

/** A form on its way. */
export interface Form<Texts> {
  /**
   * Receive all of it. The file lies on disk while `use` works on it, and is gone when that ends, however it ends.
   *
   * @throws invalid_multipart, missing_file, empty_file, payload_too_large, validation_error
   */
  receive<T>(use: (upload: Upload<Texts>) => Promise<T>): Promise<T>
}

/** A form that was received. */
export interface Upload<Texts> {
  readonly file: UploadedFile
  /** Names of parts that nobody reads. */
  readonly ignored: string[]
  /** One text. @throws what its schema says */
  text<K extends keyof Texts>(name: K): Texts[K]
  /** All texts. @throws what the schema says of the first one that it refuses */
  texts(): Texts
}

export interface UploadedFile {
  /** As the sender calls it: never part of a path here. */
  readonly name: string
  /** Media type that the sender says it has. */
  readonly type: string
  readonly sizeBytes: number
  readonly path: string
}

/** One line of an NDJSON body, counted from 1: its value, or why it has none. */
export type Line<T> =
  | { readonly line: number; readonly value: T }
  | { readonly line: number; readonly error: WbError }

/** Reply schemas by status; `null` is an empty body, a text is a media type with a free body. */
export type Replies = { readonly [status: number]: z.ZodType | null | MediaType }
export type MediaType =
  | 'text/html'
  | 'text/plain'
  | 'application/x-ndjson'
  | 'application/json'
  | 'text/event-stream'
  | 'image/*'

/** An audit action of a route that changes many fields, only some of which are worth a record. */
export interface ChangeAudit {
  readonly action: AuditAction
  /** Recorded by their names, never their values. */
  readonly fields: readonly string[]
}

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
  /**
   * What the audit trail records when the route succeeds: always, and then its handler gives the details, or where one
   * of some fields becomes another, and then its handler asks with every change.
   */
  readonly audit?: AuditAction | ChangeAudit
  /**
   * Events of the stream that the route answers, by name: always where its reply is one, else instead of its reply to
   * `Accept: text/event-stream`.
   */
  readonly events?: Readonly<Record<string, z.ZodType>>
  /** Another API whose format errors and events follow. @see docs/agents.md#from-an-openai-client */
  readonly dialect?: 'openai'
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
      : B extends MultipartBody<infer S>
        ? Form<z.output<S>>
        : undefined
type BodyIn<B> =
  B extends JsonBody<infer S>
    ? z.input<S>
    : B extends NdjsonBody<infer S>
      ? AsyncIterable<z.input<S>>
      : B extends MultipartBody
        ? FormData
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
        (B extends undefined ? object : { body: BodyIn<B> })
    : never

/** Bytes of a response, and their media type. */
export interface BinaryBody {
  readonly mediaType: string
  readonly bytes: Uint8Array
}

/** What a free body is made of: objects that leave one per line, text or bytes as they are, or a document that is encoded. */
type Free<M> = M extends 'application/x-ndjson'
  ? AsyncIterable<object>
  : M extends 'text/html' | 'text/plain'
    ? string
    : M extends 'image/*'
      ? BinaryBody
      : object

/**
 * One event of a stream. Its id is what a client sends back as `Last-Event-ID` to go on from there; empty where nothing
 * can be gone on from.
 */
export interface ServerEvent {
  readonly id: string
  readonly event: string
  readonly data: object
}

/** A response that the library of a protocol makes: its status, its body and the headers that tell of it. */
export interface OwnResponse {
  answer(request: globalThis.Request): Promise<globalThis.Response>
  /** It is a stream that goes on until somebody ends it. */
  readonly isEndless: boolean
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
        | { own: OwnResponse }
    : never

/** What a client gets back: the body of whichever success status came. */
export type Reply<T> =
  T extends Route<string, infer _Q, infer _B, infer R> ? { [S in keyof R]: Decoded<R[S]> }[keyof R] : never
