import { expect } from 'vitest'
import { open, type TestResponse, type TestRuntime, type TestRuntimeOptions } from './runtime.ts'

export type Row = Readonly<Record<string, unknown>>
export type Send = (line: string, body?: unknown) => Promise<TestResponse>

export const workspacesPath = '/api/v1/workspaces'

/** A workspace with row-level access, an administrator `root`, and a knowledge base. */
export interface RestrictedWorkspace {
  readonly wb: TestRuntime
  /** Path of the workspace. */
  readonly workspace: string
  /** Path of the knowledge base. */
  readonly base: string
  /** Returns a function that sends requests as a principal. */
  as(principal: string): Send
}

/** @param fields  of the knowledge base; `prepare` may create what they refer to */
export async function openRestrictedWorkspace(
  options: TestRuntimeOptions & {
    readonly prepare?: (workspace: string, wb: TestRuntime) => Promise<object>
  } = {},
): Promise<RestrictedWorkspace> {
  const { prepare, ...runtimeOptions } = options
  const wb = await open(runtimeOptions)
  const made = await wb.send(`POST ${workspacesPath}`, { name: 'w', kind: 'local', rlacEnabled: true })
  const workspace = `${workspacesPath}/${made.body.workspaceId}`
  const fields = await prepare?.(workspace, wb)
  const created = await wb.send(`POST ${workspace}/knowledge-bases`, { name: 'kb', ...fields })
  expect(created.status).toBe(201)
  await wb.send(`POST ${workspace}/principals`, { principalId: 'root', role: 'admin' })
  return {
    wb,
    workspace,
    base: `${workspace}/knowledge-bases/${created.body.knowledgeBaseId}`,
    as: principal => (line, body) => wb.send(line, body, { 'x-view-as-principal': principal }),
  }
}

/** Ingests a document, and returns its path. */
export async function ingest(send: Send, base: string, body: object): Promise<string> {
  const reply = await send(`POST ${base}/ingest`, body)
  expect(reply.status).toBe(201)
  return `${base}/documents/${(reply.body.document as Row).documentId}`
}

export const itemsOf = ({ body }: TestResponse) => body.items as Row[]
export const codeOf = ({ body }: TestResponse) => (body.error as Row | undefined)?.code

/** Returns the IDs of the hits of a search. */
export async function idsFound(send: Send, base: string, text: string): Promise<string[]> {
  const { body } = await send(`POST ${base}/search`, { text, topK: 50 })
  return (body as unknown as Row[]).map(({ id }) => String(id))
}
