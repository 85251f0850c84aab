import type { AuditTrail } from '../access/audit.ts'
import type { Caller } from '../access/caller.ts'
import { WbError } from '../contract/errors.ts'
import type { Answer, Input, Reply, Route } from '../contract/route.ts'
import { validate } from '../http/validate.ts'

/** Answers one route. */
export type Handler<T extends Route> = (input: Input<T>, caller: Caller) => Promise<Answer<T>> | Answer<T>

interface Asked {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: unknown
  readonly body?: unknown
}

interface Answered<T extends Route> {
  readonly status: number
  readonly body: Reply<T>
}

type Items<T extends Route> = Reply<T> extends { items: (infer I)[] } ? I[] : never

/** Items of one list that a tool gives when no limit is named. */
const itemsMax = 10_000
const pageSize = 200
/** The same, as JSON: of messages ten thousand are more than a process has room for. */
const charsMax = 32_000_000

/** The routes of a workspace as a tool uses them: by their handlers, with the checks and the audit of each. */
export class Rest {
  constructor(
    private readonly workspaceId: string,
    private readonly caller: Caller,
    private readonly audit: Pick<AuditTrail, 'note'>,
  ) {}

  /**
   * Ask a route. Whether the caller may is for the tool to check.
   *
   * @throws validation_error  the body does not fit; and what the route throws
   */
  async ask<T extends Route>(route: T, handler: Handler<T>, asked: Asked): Promise<Answered<T>> {
    const params = { workspaceId: this.workspaceId, ...asked.params }
    const query = route.query && validate(route.query, asked.query ?? {})
    const body = route.body && validate(route.body.schema, asked.body ?? {})
    const answer = await handler({ params, query, body } as unknown as Input<T>, this.caller)
    const { status, body: told, audit: details } = answer as Answered<T> & { audit?: object }
    if (typeof route.audit === 'string')
      this.audit.note(this.caller, {
        action: route.audit,
        workspaceId: this.workspaceId,
        details: { ...asked.params, ...details },
      })
    return { status, body: told }
  }

  /**
   * All items of a list.
   *
   * @throws payload_too_large  there are more than a tool gives; and what the route throws
   */
  async all<T extends Route>(route: T, handler: Handler<T>, params?: Asked['params']): Promise<Items<T>> {
    const items: unknown[] = []
    let chars = 0
    let cursor: string | undefined
    do {
      const query = { limit: pageSize, cursor }
      const { body } = await this.ask(route, handler, { params, query })
      const page = body as { items: unknown[]; nextCursor: string | null }
      items.push(...page.items)
      chars += JSON.stringify(page.items).length
      cursor = page.nextCursor ?? undefined
    } while (cursor !== undefined && items.length < itemsMax && chars < charsMax)
    if (cursor !== undefined)
      throw new WbError(
        'payload_too_large',
        `there are more than ${items.length}, or they are too long: list them by the API, in pages`,
      )
    return items as Items<T>
  }
}
