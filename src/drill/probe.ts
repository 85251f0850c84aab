import { type CanaryDocument, sharedWord } from './canaries.ts'
import type { CanaryConversation, DrillResponse, DrillRun, DrillWorld } from './drill-run.ts'

/** Asks a route as one principal. */
export interface Asker {
  readonly run: DrillRun
  readonly world: DrillWorld
  readonly principalId: string
  readonly seesAll: (knowledgeBaseId: string) => boolean
}

/** A test of one route. */
export interface RouteProbe {
  /**
   * Behavior that the route must show to some principal in every drill: show canaries, or refuse a request. `neither` is for routes
   * whose responses contain no content, and which are only searched for leaks.
   */
  readonly proof: 'shows' | 'refuses' | 'neither'
  ask(asker: Asker): Promise<void>
}

export type Ask = RouteProbe['ask']

const acceptsEvents = { accept: 'application/json, text/event-stream' }
export const question = `What does ${sharedWord} say?`
const pageLimit = 7
export const missingId = '00000000-0000-4000-8000-000000000000'

export const shows = (ask: Ask): RouteProbe => ({ proof: 'shows', ask })
export const refuses = (ask: Ask): RouteProbe => ({ proof: 'refuses', ask })
export const neither = (ask: Ask): RouteProbe => ({ proof: 'neither', ask })

export const isHiddenFrom =
  (principalId: string) =>
  ({ viewers }: { viewers: ReadonlySet<string> }) =>
    !viewers.has(principalId)

/** Reads all pages of a list, and returns their texts and the number of items. */
export async function readAllPages(
  { run, principalId }: Asker,
  name: string,
  params: Record<string, string> = {},
): Promise<{ text: string; items: number }> {
  let [text, items, cursor] = ['', 0, undefined as string | undefined]
  do {
    const query = { limit: pageLimit, ...(cursor !== undefined && { cursor }) }
    const page = await run.ask(name, principalId, { params, query })
    text += page.text
    items += (page.body.items as unknown[] | undefined)?.length ?? 0
    cursor = (page.body.nextCursor as string | null | undefined) ?? undefined
  } while (cursor !== undefined)
  return { text, items }
}

/** A route of one document or job: visible ones are shown, and others do not exist. */
export function eachDocument(
  name: string,
  paramsOf: (one: CanaryDocument) => Record<string, string>,
): [string, RouteProbe] {
  const ask: Ask = async ({ run, world, principalId }) => {
    for (const document of world.documents) {
      const response = await run.ask(name, principalId, { params: paramsOf(document) })
      if (document.viewers.has(principalId)) expectOk(run, name, principalId, response)
      else run.expectRefused(name, principalId, response)
    }
  }
  return [name, shows(ask)]
}

/** A route of a conversation: its own principal gets an answer, and for others it does not exist. */
export function eachConversation(
  name: string,
  partsOf: (one: CanaryConversation) => { params?: Record<string, string>; body?: unknown } = () => ({}),
  proof: RouteProbe['proof'] = 'shows',
): [string, RouteProbe] {
  const ask: Ask = async ({ run, world, principalId }) => {
    for (const one of world.conversations) {
      const isOwn = one.viewers.has(principalId)
      if (isOwn && proof === 'refuses') continue
      const { params, body } = partsOf(one)
      const { agentId } = world
      const { conversationId, questionId: messageId } = one
      const response = await run.ask(name, principalId, {
        params: { agentId, conversationId, messageId, ...params },
        body,
      })
      if (isOwn) expectOk(run, name, principalId, response)
      else run.expectRefused(name, principalId, response)
    }
  }
  return [name, { proof, ask }]
}

function expectOk(run: DrillRun, name: string, principalId: string, { status, text }: DrillResponse): void {
  if (status >= 400) run.reportRefusal(name, principalId, `status ${status}: ${text.slice(0, 200)}`)
}

/** Asks something for each knowledge base of the drill. */
export function eachBase(
  ask: (
    asker: Asker,
    base: DrillWorld['bases'][number],
    params: { knowledgeBaseId: string },
  ) => Promise<void>,
): Ask {
  return async asker => {
    for (const base of asker.world.bases) await ask(asker, base, { knowledgeBaseId: base.knowledgeBaseId })
  }
}

/** Calls an MCP method. */
export async function callMcp(
  { run, principalId }: Asker,
  method: string,
  params: object = {},
): Promise<string> {
  const body = { jsonrpc: '2.0', id: 1, method, params }
  return (await run.ask('mcp.send', principalId, { body, headers: acceptsEvents })).text
}

/** @throws Error  the tool does not accept the arguments, so that the call proves nothing */
export async function callTool(asker: Asker, name: string, args: object = {}): Promise<string> {
  const text = await callMcp(asker, 'tools/call', { name, arguments: args })
  if (text.includes('Invalid arguments for tool')) throw new Error(`the drill called a tool wrongly: ${text}`)
  return text
}

/** Returns a form with a text file. */
export function fileForm(name: string, content: string): FormData {
  const form = new FormData()
  form.set('file', new File([content], name, { type: 'text/plain' }))
  return form
}
