import type { AuditTrail } from '../access/audit-trail.ts'
import type { Caller } from '../access/caller.ts'
import type { HandlerInput, HandlerReply, ReplyBody, Route } from '../contract/route.ts'
import { validate } from '../http/validate.ts'

/** Handles requests to one route. */
export type RouteHandler<T extends Route> = (
  input: HandlerInput<T>,
  caller: Caller,
) => Promise<HandlerReply<T>> | HandlerReply<T>

interface RouteRequest {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: unknown
  readonly body?: unknown
}

interface RouteResult<T extends Route> {
  readonly status: number
  readonly body: ReplyBody<T>
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
}

/** One page of a list. */
export interface ToolPage<T> {
  readonly items: readonly T[]
  readonly nextCursor: string | null
}

/** Cursor and maximum size of a page. */
export interface ToolPageQuery {
  readonly limit: number
  readonly cursor?: string | undefined
}

type PageItem<T extends Route> = ReplyBody<T> extends { items: (infer I)[] } ? I : never

/** Maximum length of a page as JSON. Longer pages get fewer items; a single item is never truncated. */
const pageCharsMax = 100_000

/** Calls routes of a workspace through their handlers, with validation and audit. Used by tools. */
export class RouteCaller {
  constructor(
    private readonly workspaceId: string,
    private readonly caller: Caller,
    private readonly audit: Pick<AuditTrail, 'note'>,
  ) {}

  /**
   * Calls a route. Does not check access: check it before you call this method.
   *
   * @throws validation_error  the body is invalid
   * @throws the errors of the route
   */
  async call<T extends Route>(
    route: T,
    handler: RouteHandler<T>,
    request: RouteRequest,
  ): Promise<RouteResult<T>> {
    const params = { workspaceId: this.workspaceId, ...request.params }
    const query = route.query && validate(route.query, request.query ?? {})
    const body = route.body && validate(route.body.schema, request.body ?? {})
    const reply = await handler({ params, query, body } as unknown as HandlerInput<T>, this.caller)
    const { audit: details, ...response } = reply as RouteResult<T> & { audit?: object }
    if (typeof route.audit === 'string')
      this.audit.note(this.caller, {
        action: route.audit,
        workspaceId: this.workspaceId,
        details: { ...request.params, ...details },
      })
    return response
  }

  /**
   * Reads one page of a list. Returns fewer items than requested if the page would be too long for a model.
   *
   * @param select  selects the fields of an item
   * @throws the errors of the route
   */
  async page<T extends Route, Selected>(
    route: T,
    handler: RouteHandler<T>,
    { limit, cursor, params }: ToolPageQuery & Pick<RouteRequest, 'params'>,
    select: (item: PageItem<T>) => Selected,
  ): Promise<ToolPage<Selected>> {
    for (let count = limit; ; count = Math.ceil(count / 2)) {
      const { body } = await this.call(route, handler, { params, query: { limit: count, cursor } })
      const { items, nextCursor } = body as { items: PageItem<T>[]; nextCursor: string | null }
      const page = { items: items.map(select), nextCursor }
      if (items.length <= 1 || JSON.stringify(page.items).length <= pageCharsMax) return page
    }
  }
}
