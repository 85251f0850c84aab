import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import type { AuditEvent } from '../../src/access/audit-trail.ts'
import { type AuthContext, anonymousContext } from '../../src/access/subject.ts'
import type { Authenticate } from '../../src/auth/authenticate.ts'
import { systemClock } from '../../src/base/clock.ts'
import { anyCaller, changesAnyOf, member, needs, openToAll } from '../../src/contract/access.ts'
import { type ErrorEnvelope, WbError } from '../../src/contract/errors.ts'
import { metadata } from '../../src/contract/fields.ts'
import { limits } from '../../src/contract/limits.ts'
import { pageQuery } from '../../src/contract/page.ts'
import { route } from '../../src/contract/route.ts'
import { runtimeRoutes } from '../../src/contract/runtime-routes.ts'
import { type App, type AppDependencies, type AppSettings, createApp } from '../../src/http/app.ts'
import type { ConnectionPeer } from '../../src/http/incoming-request.ts'
import { runtimeHandlers } from '../../src/http/runtime-handlers.ts'
import { tables } from '../../src/storage/tables.ts'
import { openAccess } from '../harness/open-access.ts'

const Note = z.object({
  name: z.string().min(1).max(10),
  tags: z.array(z.object({ label: z.string() })).optional(),
  metadata: metadata.optional(),
  payload: z.record(z.string(), z.unknown()).optional(),
})

/** A small API with one route of each kind. */
const notes = {
  create: route({
    method: 'POST',
    path: '/api/v1/notes',
    summary: 'Create a note',
    access: anyCaller,
    body: { kind: 'json', schema: Note, mode: 'lenient', limitBytes: limits.jsonBodyBytes },
    replies: { 201: z.object({ name: z.string() }) },
    errors: ['conflict', 'invalid_metadata'],
  }),
  update: route({
    method: 'PATCH',
    path: '/api/v1/notes',
    summary: 'Change a note',
    access: anyCaller,
    body: {
      kind: 'json',
      schema: z.strictObject({ name: z.string() }).partial(),
      mode: 'strict',
      limitBytes: limits.jsonBodyBytes,
    },
    replies: { 200: z.object({ name: z.string() }) },
    errors: [],
  }),
  list: route({
    method: 'GET',
    path: '/api/v1/notes',
    summary: 'List notes',
    access: anyCaller,
    query: pageQuery,
    replies: { 200: z.object({ limit: z.int(), cursor: z.string().nullable() }) },
    errors: [],
  }),
  show: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId/records/:recordId',
    summary: 'Show one',
    access: member(null),
    replies: { 200: z.object({ recordId: z.string() }) },
    errors: ['workspace_not_found'],
  }),
  delete: route({
    method: 'DELETE',
    path: '/api/v1/workspaces/:workspaceId',
    summary: 'Delete one',
    access: needs('manage:workspace'),
    replies: { 204: null },
    errors: [],
  }),
  alter: route({
    method: 'PATCH',
    path: '/api/v1/workspaces/:workspaceId',
    summary: 'Change one',
    access: needs('write').requireIf(changesAnyOf('rlacEnabled'), 'manage:access'),
    body: {
      kind: 'json',
      schema: z.strictObject({ name: z.string(), rlacEnabled: z.boolean().nullable() }).partial(),
      mode: 'strict',
      limitBytes: limits.jsonBodyBytes,
    },
    replies: { 200: z.object({}) },
    errors: [],
  }),
  revoke: route({
    method: 'DELETE',
    path: '/api/v1/workspaces/:workspaceId/api-keys/:keyId',
    summary: 'Revoke one',
    access: needs('manage:keys'),
    replies: { 204: null },
    errors: ['api_key_not_found'],
    audit: 'api_key.revoke',
  }),
  batch: route({
    method: 'POST',
    path: '/api/v1/notes/batch',
    summary: 'Many notes',
    access: anyCaller,
    body: { kind: 'ndjson', schema: Note, limitBytes: limits.ingestBodyBytes },
    replies: { 200: 'application/x-ndjson' },
    errors: [],
  }),
  renew: route({
    method: 'POST',
    path: '/api/v1/notes/renew',
    summary: 'Renew them, with or without words',
    access: anyCaller,
    body: {
      kind: 'json',
      schema: z.object({ name: z.string().default('unnamed') }),
      mode: 'lenient',
      limitBytes: limits.jsonBodyBytes,
    },
    replies: { 200: z.object({ name: z.string() }) },
    errors: [],
  }),
  rename: route({
    method: 'PATCH',
    path: '/api/v1/notes/name',
    summary: 'Rename a note',
    access: anyCaller,
    body: {
      kind: 'json',
      schema: z.strictObject({ name: z.string() }),
      mode: 'strict',
      limitBytes: limits.jsonBodyBytes,
    },
    replies: { 200: z.object({}) },
    errors: [],
    audit: { action: 'workspace.update', fields: ['name'] },
  }),
  page: route({
    method: 'GET',
    path: '/page',
    summary: 'A page',
    access: openToAll,
    replies: { 200: 'text/html' },
    errors: [],
  }),
}

const api = { operational: runtimeRoutes, notes }
export type Api = typeof api
type NoteHandlers = AppDependencies<Api>['handlers']['notes']

export const noteHandlers: NoteHandlers = {
  create: ({ body }) => ({ status: 201, body }),
  update: ({ body }) => ({ status: 200, body: { name: body.name ?? '' } }),
  list: ({ query }) => ({ status: 200, body: { limit: query.limit, cursor: query.cursor ?? null } }),
  show: ({ params }) => ({ status: 200, body: { recordId: params.recordId } }),
  delete: () => ({ status: 204, body: undefined }),
  batch: ({ body }) => ({ status: 200, body: lineOutcomes(body) }),
  alter: ({ body }, caller) => {
    caller.checkChange({ name: 'x', rlacEnabled: false }, body)
    return { status: 200, body: {} }
  },
  revoke: () => ({ status: 204, body: undefined }),
  renew: ({ body }) => ({ status: 200, body }),
  rename: ({ body }, caller) => {
    caller.recordChange({ name: 'x' }, body, {})
    return { status: 200, body: {} }
  },
  page: () => ({ status: 200, body: '<p>' }),
}

async function* lineOutcomes(lines: AsyncIterable<{ line: number; error?: WbError }>) {
  for await (const each of lines) yield { line: each.line, code: each.error?.code ?? null }
}

export const settings: AppSettings = {
  requestIdHeader: 'X-Request-Id',
  production: false,
  strictErrors: true,
  origin: {
    loopback: true,
    acceptsAnonymous: true,
    publicOrigin: null,
    allowedHosts: [],
    allowedOrigins: [],
    machineName: 'workstation',
    csrfOriginCheck: true,
    browserLogin: false,
  },
  trustProxyHeaders: false,
  uploadDir: join(tmpdir(), 'wb-http-uploads'),
  rateLimits: null,
  bodyMemory: { totalBytes: 256_000_000, perCallerBytes: 64_000_000 },
  streamsPerCaller: 32,
  uploadsPerCaller: 32,
}

export interface LogEntry {
  level: string
  facts: Record<string, unknown>
  message: string
}

/** A request with the peer of its connection. Without a peer, the request is made in process. */
export type TestRequestInit = RequestInit & { peer?: ConnectionPeer }

export interface TestApp {
  readonly app: App
  readonly logged: LogEntry[]
  /** Events that were recorded in the audit trail, or stored with a change and announced. */
  readonly audited: AuditEvent[]
  send(line: string, init?: TestRequestInit): Promise<Response>
  post(body: unknown, init?: RequestInit): Promise<Response>
}

/** Creates an application with the small API, with changes for a test. */
export function createTestApp(
  changed: {
    notes?: Partial<NoteHandlers>
    settings?: Partial<AppSettings>
    auth?: AuthContext
    authenticate?: Authenticate
    countWorkspaces?: () => Promise<number>
    clock?: typeof systemClock
  } = {},
): TestApp {
  const logged: LogEntry[] = []
  const note = (level: string) => (facts: object, message: string) => {
    logged.push({ level, facts: { ...facts }, message })
  }
  const clock = changed.clock ?? systemClock
  const audited: AuditEvent[] = []
  const audit: AppDependencies<typeof api>['audit'] = {
    note: (_actor, event) => void audited.push(event),
    draft: (_actor, event) => ({
      write: { op: 'insert', table: tables.audit, row: { drafted: event } } as never,
      announce: () => void audited.push(event),
    }),
  }
  const app = createApp({
    api,
    handlers: {
      operational: runtimeHandlers({
        build: { version: '1.2.3', commit: 'abc', buildTime: '2026-01-02T03:04:05.678Z' },
        api,
        clock,
        mcpEnabled: false,
        countWorkspaces: changed.countWorkspaces ?? (async () => 3),
      }),
      notes: { ...noteHandlers, ...changed.notes },
    },
    authenticate: changed.authenticate ?? (() => changed.auth ?? anonymousContext('disabled')),
    anonymous: anonymousContext('disabled'),
    scopeToWorkspace: auth => auth,
    audit,
    rowAccess: openAccess,
    log: { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') },
    clock,
    settings: { ...settings, ...changed.settings },
  })
  async function send(line: string, init: TestRequestInit = {}) {
    const [method, path] = line.split(' ')
    const { peer, ...rest } = init
    return app.fetch(new Request(`http://localhost:8787${path}`, { method, ...rest }), peer && { peer })
  }
  return {
    app,
    logged,
    audited,
    send,
    post: (body, init) =>
      send('POST /api/v1/notes', {
        body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
        ...init,
        headers: { 'content-type': 'application/json', ...(init?.headers as Record<string, string>) },
      }),
  }
}

export const throwError = (code: WbError['code'], message: string = code): never => {
  throw new WbError(code, message)
}

export async function errorOf(response: Response): Promise<ErrorEnvelope['error']> {
  return ((await response.json()) as ErrorEnvelope).error
}
