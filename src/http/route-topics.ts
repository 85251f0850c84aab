import type { Handlers } from '../access/caller.ts'
import type { Topic } from '../contract/route.ts'

/** Routes of an application, by topic. */
export type RouteTopics = Readonly<Record<string, Topic>>

/** Handlers of all routes of an application. A missing handler is a compile error. */
export type RouteHandlers<S extends RouteTopics> = { [K in keyof S]: Handlers<S[K]> }
