import type { Route } from '../contract/route.ts'
import {
  type Canary,
  type CanaryBase,
  type CanaryDocument,
  type CanaryRecord,
  secretsIn,
} from './canaries.ts'
import type { DrillFinding, RouteResult } from './drill-report.ts'
import { routeLine, workspaceRoutes } from './route-names.ts'

/** Sends a request to the runtime of the drill. */
export type SendDrillRequest = (request: Request, as?: 'operator') => Promise<Response>

export interface DrillResponse {
  readonly status: number
  readonly text: string
  /** Parsed JSON; an empty object for other bodies. */
  readonly body: Readonly<Record<string, unknown>>
}

/** Values of a request: path parameters, query fields and headers, and a body. */
export interface RequestParts {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number>>
  readonly headers?: Readonly<Record<string, string>>
  /** An object is sent as JSON, a string as NDJSON. */
  readonly body?: unknown
  /** Route to send the request to, if the response shows what another route has changed. */
  readonly through?: string
}

/** The rows and conversations that a drill has planted. */
export interface DrillWorld {
  readonly workspaceId: string
  readonly bases: readonly CanaryBase[]
  readonly documents: readonly CanaryDocument[]
  readonly records: readonly CanaryRecord[]
  readonly agentId: string
  readonly conversations: CanaryConversation[]
  readonly principalIds: readonly string[]
}

/** A conversation of one principal. Its title, question and attachment contain the secret. */
export interface CanaryConversation extends Canary {
  readonly owner: string
  readonly conversationId: string
  /** The message with the question, which has an image. */
  readonly questionId: string
  readonly attachmentId: string
}

/**
 * Statuses of a request about something that the caller may not see or change. With another status, such as 400 for an invalid
 * body, the runtime has checked the request before the rights of the caller, or the request proves nothing.
 */
const refusalStatuses = [403, 404]

/** Sends requests as principals, and compares the responses with what each principal may see. */
export class DrillRun {
  readonly results = new Map<string, RouteResult>()
  readonly findings: DrillFinding[] = []
  readonly #canaries: Canary[] = []
  readonly #bySecret = new Map<string, Canary>()
  /** Secrets that a route has shown to principals who may see them. */
  readonly #shown = new Map<string, Set<string>>()

  constructor(
    private readonly workspaceId: string,
    private readonly send: SendDrillRequest,
    private readonly tokens: ReadonlyMap<string, string>,
  ) {}

  /** Adds a canary, so that its secret and its IDs are searched for in all responses. */
  watch(canary: Canary): void {
    this.#canaries.push(canary)
    this.#bySecret.set(canary.secret, canary)
  }

  /** Sends a request as the owner of the copy. Its response is not checked. */
  async asOperator(name: string, parts: RequestParts = {}): Promise<DrillResponse> {
    const response = await this.#exchange(this.#request(routeOf(name), parts), 'operator')
    if (response.status >= 400)
      throw new Error(
        `the drill could not prepare its canaries: ${routeLine(routeOf(name))} ${response.text}`,
      )
    return response
  }

  /** Sends a request as a principal, and checks that the response contains nothing that it may not see. */
  async ask(name: string, principalId: string, parts: RequestParts = {}): Promise<DrillResponse> {
    const request = this.#request(routeOf(parts.through ?? name), {
      ...parts,
      headers: { ...parts.headers, authorization: `Bearer ${this.tokens.get(principalId)}` },
    })
    const sent = request.url + JSON.stringify(parts.body ?? '')
    const response = await this.#exchange(request)
    const result = this.resultOf(name)
    result.requests++
    this.#check(name, principalId, sent, response)
    return response
  }

  /** Returns the counts of a route. */
  resultOf(name: string): RouteResult {
    let result = this.results.get(name)
    if (!result) {
      result = {
        name,
        route: routeLine(routeOf(name)),
        requests: 0,
        shown: 0,
        refused: 0,
        leaks: 0,
        wrongRefusals: 0,
      }
      this.results.set(name, result)
    }
    return result
  }

  /** Checks that a principal has received all canaries that it may see. */
  expectShown(name: string, principalId: string, text: string, canaries: readonly Canary[]): void {
    const found = secretsIn(text)
    for (const { secret, ids, viewers } of canaries)
      if (viewers.has(principalId) && !found.has(secret) && !ids.some(id => text.includes(id)))
        this.reportRefusal(name, principalId, `${ids[0]} is missing`)
  }

  /**
   * Checks that a request about something that a principal may not see or change was refused.
   *
   * @param statuses  statuses of a refusal
   */
  expectRefused(
    name: string,
    principalId: string,
    { status }: DrillResponse,
    statuses: readonly number[] = refusalStatuses,
  ): void {
    if (statuses.includes(status)) this.resultOf(name).refused++
    else this.reportLeak(name, principalId, `status ${status} instead of a refusal`)
  }

  reportLeak(name: string, principalId: string, description: string): void {
    this.resultOf(name).leaks++
    this.findings.push({ kind: 'leak', route: this.resultOf(name).route, principalId, description })
  }

  reportRefusal(name: string, principalId: string, description: string): void {
    this.resultOf(name).wrongRefusals++
    this.findings.push({ kind: 'wrongRefusal', route: this.resultOf(name).route, principalId, description })
  }

  #check(name: string, principalId: string, sent: string, { text, status }: DrillResponse): void {
    if (status >= 500) this.reportRefusal(name, principalId, `status ${status}: ${text.slice(0, 200)}`)
    const shown = this.#shown.get(name) ?? new Set<string>()
    this.#shown.set(name, shown)
    for (const secret of secretsIn(text)) {
      const canary = this.#bySecret.get(secret)
      if (!canary || sent.includes(secret)) continue
      if (canary.viewers.has(principalId)) shown.add(secret + principalId)
      else this.reportLeak(name, principalId, `a text of ${canary.ids[0]} is in the response`)
    }
    for (const { ids, viewers, secret } of this.#canaries) {
      const id = ids.find(one => text.includes(one) && !sent.includes(one))
      if (id === undefined) continue
      if (viewers.has(principalId)) shown.add(secret + principalId)
      else this.reportLeak(name, principalId, `the ID ${id} is in the response`)
    }
    this.resultOf(name).shown = shown.size
  }

  #request(route: Route, { params = {}, query = {}, headers = {}, body }: RequestParts): Request {
    const values: Record<string, string> = { workspaceId: this.workspaceId, ...params }
    const path = route.path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(values[name] ?? ''))
    const url = new URL(path, 'http://localhost')
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value))
    const content = encodeBody(body)
    return new Request(url, {
      method: route.method,
      body: content.body,
      headers: { ...content.headers, ...headers },
    })
  }

  async #exchange(request: Request, as?: 'operator'): Promise<DrillResponse> {
    const response = await this.send(request, as)
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false
    return { status: response.status, text, body: isJson ? JSON.parse(text) : {} }
  }
}

function encodeBody(body: unknown): { body: string | FormData | null; headers: Record<string, string> } {
  if (body === undefined) return { body: null, headers: {} }
  if (body instanceof FormData) return { body, headers: {} }
  if (typeof body === 'string') return { body, headers: { 'content-type': 'application/x-ndjson' } }
  return { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
}

function routeOf(name: string): Route {
  const route = workspaceRoutes.get(name)
  if (!route) throw new Error(`the route '${name}' is not declared`)
  return route
}
