import type { Handlers } from '../access/caller.ts'
import type { Topic } from '../contract/route.ts'

/** All routes of an application, by topic. */
export type RouteTopics = Readonly<Record<string, Topic>>

/** Handlers for all routes of a surface; a missing one is a compile error. */
export type RouteHandlers<S extends RouteTopics> = { [K in keyof S]: Handlers<S[K]> }
