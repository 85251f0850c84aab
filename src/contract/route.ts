import type { z } from 'zod'
import type { Access, RootAccess, WorkspaceAccess } from './access.ts'
import type { AuditAction, AuditDetails } from './audit-record.ts'
import type { ErrorCode, WbError } from './errors.ts'
import type { ParamName } from './ids.ts'

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** Names of the `:parameters` in a path. */
export type ParamNames<P extends string> = P extends `${string}:${infer N}/${infer Rest}`
  ? N | ParamNames<`/${Rest}`>
  : P extends `${string}:${infer N}`
    ? N
    : never

type KnownPath<P extends string> = [ParamNames<P>] extends [ParamName] ? P : never

/**
 * Paths of workspaces and below. Routes there cannot be `open`.
 *
 * @see docs/requirements.md#S1-02
 */
type WorkspacePath = `/api/v1/workspaces${string}`

/** Access rule of setup routes, which no other routes use. */
type SetupAccess = Extract<RootAccess, { kind: 'setup' }>

/** Rules allowed for a path: workspace rules below a workspace, root rules elsewhere. */
type AccessFor<P extends string> =
  'workspaceId' extends ParamNames<P>
    ? WorkspaceAccess
    : P extends WorkspacePath
      ? Exclude<RootAccess, SetupAccess | { kind: 'open' }>
      : P extends `/setup/${string}`
        ? SetupAccess
        : Exclude<RootAccess, SetupAccess>

/** JSON body. `strict` refuses unknown fields; `lenient` ignores and reports them. */
export interface JsonBody<S extends z.ZodType = z.ZodType> {
  readonly kind: 'json'
  readonly schema: S
  readonly mode: 'strict' | 'lenient'
  readonly limitBytes: number
  /** Error code for an invalid body, instead of `validation_error`. */
  readonly refusal?: ErrorCode
}

/** NDJSON body: one JSON value per line, streamed in both directions. Each line is validated separately. */
export interface NdjsonBody<S extends z.ZodType = z.ZodType> {
  readonly kind: 'ndjson'
  readonly schema: S
  readonly limitBytes: number
}

/** Form with a file in the part `file`, and text fields. It is received when the handler requests it. */
export interface MultipartBody<S extends z.ZodObject = z.ZodObject> {
  readonly kind: 'multipart'
  /** Schema of the text fields by part name. Unknown parts are ignored and reported. */
  readonly schema: S
  /** Names of parts that contain JSON. Invalid JSON is passed to the schema as text. */
  readonly json: readonly string[]
  /** Maximum size of the whole form, in bytes. */
  readonly limitBytes: number
}

export type Body = JsonBody | NdjsonBody | MultipartBody

/** Returns true if an empty body is read as `{}`, because no field is required. */
export function canBeEmpty({ kind, schema }: Body): boolean {
  return kind === 'json' && schema.type === 'object' && schema.safeParse({}).success
}

/** Form that has not been received yet. */
export interface PendingForm<Texts> {
  /**
   * Receives the whole form. The file exists on disk only until `use` ends or fails.
   *
   * @throws invalid_multipart, missing_file, empty_file, payload_too_large, validation_error
   */
  receive<T>(use: (upload: ReceivedForm<Texts>) => Promise<T>): Promise<T>
}

/** Received form. */
export interface ReceivedForm<Texts> {
  readonly file: UploadedFile
  /** Names of unknown parts. */
  readonly ignored: string[]
  /**
   * Returns one text field.
   *
   * @throws the error of its schema, if invalid
   */
  text<K extends keyof Texts>(name: K): Texts[K]
  /**
   * Returns all text fields.
   *
   * @throws the error of the schema for the first invalid field
   */
  texts(): Texts
}

export interface UploadedFile {
  /** Name from the client. Never used as part of a path here. */
  readonly name: string
  /** Media type from the client. */
  readonly type: string
  readonly sizeBytes: number
  readonly path: string
}

/** Line of an NDJSON body, counted from 1, with its value or the error in it. */
export type NdjsonLine<T> =
  | { readonly line: number; readonly value: T }
  | { readonly line: number; readonly error: WbError }

/** Response schemas by status. `null` is an empty body; a text is the media type of a free body. */
export type Replies = { readonly [status: number]: z.ZodType | null | MediaType }
export type MediaType =
  | 'text/html'
  | 'text/plain'
  | 'application/x-ndjson'
  | 'application/json'
  | 'text/event-stream'
  | 'image/*'

/** Audit action of a route that changes many fields, for changes of certain fields. */
export interface ChangeAudit {
  readonly action: AuditAction
  /** Fields whose changes are recorded, by name and never by value. */
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
   * Audit action of a successful request. A plain action is always recorded, with details from the handler. A
   * `ChangeAudit` is recorded when one of its fields changes, which the handler checks.
   */
  readonly audit?: AuditAction | ChangeAudit
  /**
   * Events of the streamed response, by name. If the route also has another response, the stream is sent only
   * for `Accept: text/event-stream`.
   */
  readonly events?: Readonly<Record<string, z.ZodType>>
  /**
   * External API whose format is used for errors and events.
   *
   * @see docs/agents.md#from-an-openai-client
   */
  readonly dialect?: 'openai'
}

/**
 * Declares a route. The access rule is mandatory, and a path below a workspace cannot be `open`.
 *
 * Validation, authorization, the OpenAPI document and the typed client all derive from this value.
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

/** Routes of one topic, by operation name. */
export type Topic = Readonly<Record<string, Route>>

type QueryOf<Q> = Q extends z.ZodType ? z.output<Q> : undefined
type ClientQuery<Q> = Q extends z.ZodType ? z.input<Q> : undefined
type BodyOf<B> =
  B extends JsonBody<infer S>
    ? z.output<S>
    : B extends NdjsonBody<infer S>
      ? AsyncIterable<NdjsonLine<z.output<S>>>
      : B extends MultipartBody<infer S>
        ? PendingForm<z.output<S>>
        : undefined
type ClientBody<B> =
  B extends JsonBody<infer S>
    ? z.input<S>
    : B extends NdjsonBody<infer S>
      ? AsyncIterable<z.input<S>>
      : B extends MultipartBody
        ? FormData
        : undefined

/** Validated input of a handler. */
export type HandlerInput<T> =
  T extends Route<infer P, infer Q, infer B, Replies>
    ? { params: Record<ParamNames<P>, string>; query: QueryOf<Q>; body: BodyOf<B> }
    : never

/** Request parameters of a client. */
export type ClientRequest<T> =
  T extends Route<infer P, infer Q, infer B, Replies>
    ? ([ParamNames<P>] extends [never] ? object : { params: Record<ParamNames<P>, string> }) &
        (undefined extends ClientQuery<Q> ? object : { query?: ClientQuery<Q> }) &
        (B extends undefined ? object : { body: ClientBody<B> })
    : never

/** Bytes of a response, and their media type. */
export interface BinaryBody {
  readonly mediaType: string
  readonly bytes: Uint8Array
}

/** Value of a free body: objects that are sent one per line, text, bytes, or a document that is encoded. */
type FreeBody<M> = M extends 'application/x-ndjson'
  ? AsyncIterable<object>
  : M extends 'text/html' | 'text/plain'
    ? string
    : M extends 'image/*'
      ? BinaryBody
      : object

/**
 * Event of a stream. A client can resume with its ID as `Last-Event-ID`; an empty ID cannot be resumed from.
 */
export interface ServerEvent {
  readonly id: string
  readonly event: string
  readonly data: object
}

/** Response that the library of a protocol creates: status, headers and body. */
export interface ProtocolResponse {
  answer(request: globalThis.Request): Promise<globalThis.Response>
  /** True for a stream that runs until one side closes it. */
  readonly isEndless: boolean
}

type EncodedReply<S> = S extends z.ZodType ? z.input<S> : S extends null ? undefined : FreeBody<S>
type DecodedReply<S> = S extends z.ZodType ? z.output<S> : S extends null ? undefined : unknown

/** Response of a handler: status, body and headers. */
export type HandlerReply<T> =
  T extends Route<string, infer _Q, infer _B, infer R>
    ?
        | {
            [S in keyof R]: {
              status: S
              body: EncodedReply<R[S]>
              headers?: Record<string, string | readonly string[]>
              ignored?: string[]
              /** Details for the audit trail, in addition to the IDs in the path. */
              audit?: AuditDetails
            }
          }[keyof R]
        | { status: 200; events: AsyncIterable<ServerEvent> }
        | { own: ProtocolResponse }
    : never

/** Response body that a client receives for any success status. */
export type ReplyBody<T> =
  T extends Route<string, infer _Q, infer _B, infer R>
    ? { [S in keyof R]: DecodedReply<R[S]> }[keyof R]
    : never
