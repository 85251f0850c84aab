import type { Handlers } from '../access/caller.ts'
import type { Topic } from '../contract/route.ts'

/** Routes by topic: all that an application answers. */
export type Surface = Readonly<Record<string, Topic>>

/** One handler for every route of a surface; a missing one does not compile. */
export type SurfaceHandlers<S extends Surface> = { [K in keyof S]: Handlers<S[K]> }
