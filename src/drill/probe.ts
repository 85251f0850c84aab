import { type CanaryDocument, sharedWord } from './canaries.ts'
import type { CanaryConversation, DrillFixture, DrillResponse, DrillRun } from './drill-run.ts'

/** The principal that a probe sends requests as, and the content to request. */
export interface ProbeContext {
  readonly run: DrillRun
  readonly fixture: DrillFixture
  readonly principalId: string
  readonly seesAll: (knowledgeBaseId: string) => boolean
}

/** A test of one route. */
export interface RouteProbe {
  /**
   * Result that shows that the probe works, for at least one principal in every drill: the route shows canaries, or refuses a
   * request. `neither` is for routes whose responses contain no content; they are only checked for leaks.
   */
  readonly proof: 'shows' | 'refuses' | 'neither'
  execute(context: ProbeContext): Promise<void>
}

export type ExecuteProbe = RouteProbe['execute']

const acceptsEvents = { accept: 'application/json, text/event-stream' }
export const question = `What does ${sharedWord} say?`
const pageLimit = 7
export const missingId = '00000000-0000-4000-8000-000000000000'

export const shows = (execute: ExecuteProbe): RouteProbe => ({ proof: 'shows', execute })
export const refuses = (execute: ExecuteProbe): RouteProbe => ({ proof: 'refuses', execute })
export const neither = (execute: ExecuteProbe): RouteProbe => ({ proof: 'neither', execute })

export const isHiddenFrom =
  (principalId: string) =>
  ({ viewers }: { viewers: ReadonlySet<string> }) =>
    !viewers.has(principalId)

/** Reads all pages of a list, and returns their texts and the number of items. */
export async function readAllPages(
  { run, principalId }: ProbeContext,
  name: string,
  params: Record<string, string> = {},
): Promise<{ text: string; items: number }> {
  let [text, items, cursor] = ['', 0, undefined as string | undefined]
  do {
    const query = { limit: pageLimit, ...(cursor !== undefined && { cursor }) }
    const page = await run.request(name, principalId, { params, query })
    text += page.text
    items += (page.body.items as unknown[] | undefined)?.length ?? 0
    cursor = (page.body.nextCursor as string | null | undefined) ?? undefined
  } while (cursor !== undefined)
  return { text, items }
}

/** Returns a probe of a route for one document or job: it must respond for visible ones, and refuse the others. */
export function probeEachDocument(
  name: string,
  paramsOf: (document: CanaryDocument) => Record<string, string>,
  proof: RouteProbe['proof'] = 'shows',
): [string, RouteProbe] {
  const execute: ExecuteProbe = async ({ run, fixture, principalId }) => {
    for (const document of fixture.documents) {
      const response = await run.request(name, principalId, { params: paramsOf(document) })
      if (document.viewers.has(principalId)) expectOk(run, name, principalId, response)
      else run.expectRefused(name, principalId, response)
    }
  }
  return [name, { proof, execute }]
}

/** Returns a probe of a route for one conversation: it must respond to the owner, and refuse other principals. */
export function probeEachConversation(
  name: string,
  partsOf: (conversation: CanaryConversation) => {
    params?: Record<string, string>
    body?: unknown
  } = () => ({}),
  proof: RouteProbe['proof'] = 'shows',
): [string, RouteProbe] {
  const execute: ExecuteProbe = async ({ run, fixture, principalId }) => {
    for (const conversation of fixture.conversations) {
      const isOwn = conversation.viewers.has(principalId)
      if (isOwn && proof === 'refuses') continue
      const { params, body } = partsOf(conversation)
      const { agentId } = fixture
      const { conversationId, questionId: messageId } = conversation
      const response = await run.request(name, principalId, {
        params: { agentId, conversationId, messageId, ...params },
        body,
      })
      if (isOwn) expectOk(run, name, principalId, response)
      else run.expectRefused(name, principalId, response)
    }
  }
  return [name, { proof, execute }]
}

export function expectOk(
  run: DrillRun,
  name: string,
  principalId: string,
  { status, text }: DrillResponse,
): void {
  if (status >= 400) run.reportRefusal(name, principalId, `status ${status}: ${text.slice(0, 200)}`)
}

/** Returns a function that runs `execute` for each knowledge base of the drill. */
export function forEachBase(
  execute: (
    context: ProbeContext,
    base: DrillFixture['bases'][number],
    params: { knowledgeBaseId: string },
  ) => Promise<void>,
): ExecuteProbe {
  return async context => {
    for (const base of context.fixture.bases)
      await execute(context, base, { knowledgeBaseId: base.knowledgeBaseId })
  }
}

/** Calls an MCP method. */
export async function callMcp(
  { run, principalId }: ProbeContext,
  method: string,
  params: object = {},
): Promise<string> {
  const body = { jsonrpc: '2.0', id: 1, method, params }
  return (await run.request('mcp.send', principalId, { body, headers: acceptsEvents })).text
}

/** @throws Error  the tool does not accept the arguments, so that the call proves nothing */
export async function callTool(context: ProbeContext, name: string, args: object = {}): Promise<string> {
  const text = await callMcp(context, 'tools/call', { name, arguments: args })
  if (text.includes('Invalid arguments for tool'))
    throw new Error(`the drill called a tool with invalid arguments: ${text}`)
  return text
}

/** Returns a form with a text file. */
export function fileForm(name: string, content: string): FormData {
  const form = new FormData()
  form.set('file', new File([content], name, { type: 'text/plain' }))
  return form
}
