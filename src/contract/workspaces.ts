import { z } from 'zod'
import { anyCaller, changesAnyOf, member, needs, platform } from './access.ts'
import { boundedText, isoTimestamp, secretRef } from './fields.ts'
import { limits } from './limits.ts'
import { pageOfItems, pageQuery } from './page.ts'
import { route } from './route.ts'

export const workspaceKinds = ['local', 'postgres', 'astra', 'hcd', 'openrag', 'mock'] as const
export type WorkspaceKind = (typeof workspaceKinds)[number]

export const Workspace = z
  .object({
    workspaceId: z.uuid(),
    name: z.string(),
    kind: z.enum(workspaceKinds),
    url: z.string().nullable(),
    keyspace: z.string().nullable(),
    credentials: z.record(z.string(), z.string()),
    rlacEnabled: z.boolean(),
    createdAt: isoTimestamp,
    updatedAt: isoTimestamp,
  })
  .meta({ id: 'Workspace' })
export type Workspace = z.output<typeof Workspace>

const ConnectionTest = z
  .object({ ok: z.boolean(), kind: z.enum(workspaceKinds), details: z.string() })
  .meta({ id: 'ConnectionTest' })
export type ConnectionTest = z.output<typeof ConnectionTest>

const changeable = {
  name: boundedText(limits.nameChars),
  url: z
    .union([z.httpUrl(), secretRef], { error: 'must be an http(s) URL or a secret reference' })
    .nullable(),
  keyspace: z.string().nullable(),
  credentials: z.record(z.string(), secretRef),
  rlacEnabled: z.boolean(),
}

const WorkspaceCreate = z.object({
  workspaceId: z.uuid().optional(),
  name: changeable.name,
  kind: z.enum(workspaceKinds).default('local'),
  url: changeable.url.default(null),
  keyspace: changeable.keyspace.default(null),
  credentials: changeable.credentials.default({}),
  rlacEnabled: changeable.rlacEnabled.default(false),
})
export type WorkspaceCreate = z.output<typeof WorkspaceCreate>

const WorkspacePatch = z.strictObject(changeable).partial()
export type WorkspacePatch = z.output<typeof WorkspacePatch>

const conflicts = ['workspace_name_conflict', 'workspace_database_conflict'] as const

export const workspaces = {
  list: route({
    method: 'GET',
    path: '/api/v1/workspaces',
    summary: 'List workspaces',
    access: anyCaller,
    query: pageQuery,
    replies: { 200: pageOfItems(Workspace) },
    errors: ['invalid_cursor'],
  }),
  create: route({
    method: 'POST',
    path: '/api/v1/workspaces',
    summary: 'Create a workspace with its default services and agents',
    access: platform,
    body: { kind: 'json', schema: WorkspaceCreate, mode: 'lenient', limitBytes: limits.jsonBodyBytes },
    replies: { 201: Workspace },
    errors: ['conflict', ...conflicts],
    audit: 'workspace.create',
  }),
  show: route({
    method: 'GET',
    path: '/api/v1/workspaces/:workspaceId',
    summary: 'Show a workspace',
    access: member(null),
    replies: { 200: Workspace },
    errors: ['workspace_not_found'],
  }),
  update: route({
    method: 'PATCH',
    path: '/api/v1/workspaces/:workspaceId',
    summary: 'Rename or reconfigure a workspace',
    access: needs('write').requireIf(changesAnyOf('rlacEnabled'), 'manage:access'),
    body: { kind: 'json', schema: WorkspacePatch, mode: 'strict', limitBytes: limits.jsonBodyBytes },
    replies: { 200: Workspace },
    errors: ['workspace_not_found', ...conflicts],
    audit: { action: 'workspace.update', fields: ['url', 'keyspace', 'credentials', 'rlacEnabled'] },
  }),
  delete: route({
    method: 'DELETE',
    path: '/api/v1/workspaces/:workspaceId',
    summary: 'Delete a workspace and everything in it',
    access: needs('manage:workspace'),
    replies: { 204: null },
    errors: ['workspace_not_found', 'driver_unavailable', 'workspace_misconfigured', 'cascade_incomplete'],
    audit: 'workspace.delete',
  }),
  testConnection: route({
    method: 'POST',
    path: '/api/v1/workspaces/:workspaceId/test-connection',
    summary: 'Test the store of a workspace',
    access: member(null),
    replies: { 200: ConnectionTest },
    errors: ['workspace_not_found'],
  }),
}
