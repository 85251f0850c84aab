import type { Caller } from '../access/caller.ts'

/** Returns the caller of a search for an agent. A knowledge base that is deleted in the meantime is skipped. */
export function toSearchCaller(
  caller: Pick<Caller, 'auth' | 'client' | 'reauthorize' | 'rowAccess'>,
  signal: AbortSignal,
) {
  return {
    auth: caller.auth,
    client: caller.client,
    reauthorize: () => caller.reauthorize(),
    rowAccess: (workspaceId: string) => caller.rowAccess(workspaceId),
    signal,
    skipsDeleted: true,
  }
}
