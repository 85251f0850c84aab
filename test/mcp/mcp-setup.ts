import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { onTestFinished } from 'vitest'
import type { AuditRecord } from '../../src/contract/audit-record.ts'
import type { Scope } from '../../src/contract/scopes.ts'
import { type HttpRuntime, serveOverHttp } from '../harness/http-runtime.ts'
import { type Base, makeBase, makeWorkspace } from '../harness/resources.ts'
import { open, type TestRuntimeOptions } from '../harness/runtime.ts'

export const unknownId = '99999999-9999-4999-8999-999999999999'
/** Headers of an MCP client. */
export const acceptHeaders = { accept: 'application/json, text/event-stream' }

/** The result of a tool call. */
export interface ToolCallResult {
  readonly isError: boolean
  readonly text: string
  /** The text parsed as JSON, if possible. */
  readonly value: unknown
  /** Cursor of the next page, if any. */
  readonly nextCursor: string | undefined
}

export interface McpSetup extends HttpRuntime {
  readonly workspaceId: string
  readonly base: Base
  /** Path of the MCP route. */
  readonly path: string
  /** Creates a key with these scopes and returns its token. */
  mint(scopes: readonly Scope[], workspaceId?: string): Promise<string>
  /** Connects the official client with a key. */
  client(token: string): Promise<Client>
  /** Audit records of tool calls, oldest first. */
  toolAuditRecords(): Promise<AuditRecord[]>
}

/** A runtime that requires API keys and listens on a port, with a workspace and a knowledge base. */
export async function setUpMcp(options: TestRuntimeOptions = {}): Promise<McpSetup> {
  const opened = await open({
    ...options,
    config: { auth: { mode: 'apiKey', anonymousPolicy: 'reject' }, ...options.config },
  })
  const wb = await serveOverHttp(opened)
  const asOperator = { call: opened.callAsOperator }
  const { workspaceId } = await makeWorkspace(asOperator)
  const base = await makeBase(asOperator, { workspaceId })
  const path = `/api/v1/workspaces/${workspaceId}/mcp`
  return {
    ...wb,
    workspaceId,
    base,
    path,
    async mint(scopes, keyWorkspaceId = workspaceId) {
      const line = `POST /api/v1/workspaces/${keyWorkspaceId}/api-keys`
      const { body } = await opened.sendAsOperator(line, { label: 'agent', scopes })
      return String(body.plaintext)
    },
    async client(token) {
      const transport = new StreamableHTTPClientTransport(new URL(path, wb.url), {
        requestInit: { headers: { authorization: `Bearer ${token}` } },
      })
      const client = new Client({ name: 'test', version: '1' })
      await client.connect(transport)
      onTestFinished(() => client.close())
      return client
    },
    async toolAuditRecords() {
      const line = `GET /api/v1/workspaces/${workspaceId}/audit?action=mcp.invoke&limit=200`
      return ((await opened.sendAsOperator(line)).body.items as AuditRecord[]).reverse()
    },
  }
}

/** Calls a tool. A page that is not the last has a second text with the cursor of the next call. */
export async function call(client: Client, name: string, args: object = {}): Promise<ToolCallResult> {
  const result = await client.callTool({ name, arguments: { ...args } })
  const [content, more, ...others] = result.content as { type: string; text: string }[]
  const nextCursor = result._meta?.['workbase/nextCursor'] as string | undefined
  if (content?.type !== 'text' || others.length > 0) throw new Error('a tool answers one text')
  if (more && !(nextCursor && more.text.includes(`"cursor": "${nextCursor}"`)))
    throw new Error('a second text names the cursor of the next page')
  return { isError: result.isError ?? false, text: content.text, value: jsonOf(content.text), nextCursor }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
