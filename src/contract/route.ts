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

/** Access rule that only setup routes use. */
type SetupAccess = Extract<RootAccess, { kind: 'setup' }>

/** Access rules that are allowed for a path. */
type AccessFor<P extends string> =
  'workspaceId' extends ParamNames<P>
    ? WorkspaceAccess
    : P extends WorkspacePath
      ? Exclude<RootAccess, SetupAccess | { kind: 'open' }>
      : P extends `/setup/${string}`
        ? SetupAccess
        : Exclude<RootAccess, SetupAccess>

/** JSON body. `strict` rejects unknown fields; `lenient` ignores them and reports their names. */
export interface JsonBody<S extends z.ZodType = z.ZodType> {
  readonly kind: 'json'
  readonly schema: S
  readonly mode: 'strict' | 'lenient'
  readonly limitBytes: number
  /** Error code for an invalid body, instead of `validation_error`. */
  readonly invalidBodyCode?: ErrorCode
}

/**
 * NDJSON body: one JSON value per line. Requests and responses are streamed, and each line is validated
 * separately.
 */
export interface NdjsonBody<S extends z.ZodType = z.ZodType> {
  readonly kind: 'ndjson'
  readonly schema: S
  readonly limitBytes: number
}

/** Form with text fields, and a file in the part `file`. It is not read until the handler requests it. */
export interface MultipartBody<S extends z.ZodObject = z.ZodObject> {
  readonly kind: 'multipart'
  /** Schema of the text fields by part name. Unknown parts are ignored and reported. */
  readonly schema: S
  /** Names of parts that contain JSON. Invalid JSON is passed to the schema as a string. */
  readonly json: readonly string[]
  /** Maximum size of the whole form, in bytes. */
  readonly limitBytes: number
}

export type Body = JsonBody | NdjsonBody | MultipartBody

/** Returns true if no field of the body is required. An empty body is then read as `{}`. */
export function canBeEmpty({ kind, schema }: Body): boolean {
  return kind === 'json' && schema.type === 'object' && schema.safeParse({}).success
}

/** Form that has not been received yet. */
export interface PendingForm<Texts> {
  /**
   * Receives the whole form and passes it to `use`. The file is deleted when `use` settles.
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
   * Returns one validated text field.
   *
   * @throws WbError  when the field is invalid, with the code of its schema
   */
  text<K extends keyof Texts>(name: K): Texts[K]
  /**
   * Returns all validated text fields.
   *
   * @throws WbError  when a field is invalid, with the code of its schema
   */
  texts(): Texts
}

export interface UploadedFile {
  /** File name from the client. It must not be used in a path. */
  readonly name: string
  /** Media type from the client. */
  readonly type: string
  readonly sizeBytes: number
  readonly path: string
}

/** Line of an NDJSON body, with its number from 1, and either its value or a validation error. */
export type NdjsonLine<T> =
  | { readonly line: number; readonly value: T }
  | { readonly line: number; readonly error: WbError }

/** Response schemas by status. `null` means an empty body; a string is the media type of a body without a schema. */
export type Replies = { readonly [status: number]: z.ZodType | null | MediaType }
export type MediaType =
  | 'text/html'
  | 'text/plain'
  | 'application/x-ndjson'
  | 'application/json'
  | 'text/event-stream'
  | 'image/*'

/** Audit action that is recorded only if a request changes certain fields. */
export interface ChangeAudit {
  readonly action: AuditAction
  /** Fields whose changes are recorded. Records contain the names of changed fields, but no values. */
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
   * `ChangeAudit` is recorded only if the handler detects a change of one of its fields.
   */
  readonly audit?: AuditAction | ChangeAudit
  /**
   * Schemas of the events of a streamed response, by event name. If the route also has a response without a
   * stream, the stream is sent only for `Accept: text/event-stream`.
   */
  readonly events?: Readonly<Record<string, z.ZodType>>
  /**
   * External API that defines the format of errors and events.
   *
   * @see docs/agents.md#from-an-openai-client
   */
  readonly dialect?: 'openai'
}

/**
 * Declares a route. Every route needs an access rule, and a route below a workspace cannot be `open`.
 *
 * Validation, authorization, the OpenAPI document and the typed client are derived from the declaration.
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

/**
 * Value that a handler returns for a body without a schema: for NDJSON, the objects to send, one per line; for text,
 * a string; for images, bytes; otherwise, an object to encode as JSON.
 */
type BodyWithoutSchema<M> = M extends 'application/x-ndjson'
  ? AsyncIterable<object>
  : M extends 'text/html' | 'text/plain'
    ? string
    : M extends 'image/*'
      ? BinaryBody
      : object

/**
 * Event of a stream. A client can resume the stream by sending the ID as `Last-Event-ID`, unless the ID is
 * empty.
 */
export interface ServerEvent {
  readonly id: string
  readonly event: string
  readonly data: object
}

/** Response that a protocol library creates, such as the MCP SDK. */
export interface ProtocolResponse {
  respond(request: globalThis.Request): Promise<globalThis.Response>
  /** True for a stream that runs until one side closes it. */
  readonly isEndless: boolean
}

type EncodedReply<S> = S extends z.ZodType ? z.input<S> : S extends null ? undefined : BodyWithoutSchema<S>
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
        | { protocol: ProtocolResponse }
    : never

/** Response body that a client receives for any success status. */
export type ReplyBody<T> =
  T extends Route<string, infer _Q, infer _B, infer R>
    ? { [S in keyof R]: DecodedReply<R[S]> }[keyof R]
    : never
