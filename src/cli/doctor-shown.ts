import { failure } from '../client/failure.ts'
import { network } from '../client/transport.ts'
import type { Announcement, Check, Examined } from './local.ts'

/** Why the server of a data directory serves no requests; undefined where it does. */
export async function faultOf(server: Announcement): Promise<string | undefined> {
  try {
    const answer = await network(server).fetch(`${server.url}/readyz`, { method: 'GET', headers: {} })
    const text = await answer.text()
    if (answer.status === 200) return undefined
    return (await failure({ ...answer, text: async () => text })).message
  } catch (error) {
    return (error as Error).message
  }
}

/** Where a store lies, and of which version it is. */
export function storeState({ path, schema }: Examined): string {
  if (path === undefined) return 'in memory'
  if (!schema) return `${path}, not made yet`
  const isOld = schema.found !== schema.known ? `; ${schema.known} once it is opened` : ''
  return `${path}, schema ${schema.found}${isOld}`
}

/** A finding: how often, what, and some of it. */
export function checkLine({ check, count, examples }: Check): string {
  return `${count}\t${check}\t${examples.join(', ')}`
}
