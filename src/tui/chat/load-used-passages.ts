import { citationsOf } from '../../cli/chat/citations.ts'
import type { ChatPort } from '../../cli/chat/port.ts'
import type { Citation, TurnEvent } from '../../contract/chat.ts'

/**
 * Returns the passages that an answer used, if it cites none. Returns an empty list if the request fails, because the
 * passages are optional.
 */
export async function loadUsedPassages(
  { event, data }: TurnEvent,
  port: Pick<ChatPort, 'usedPassages'>,
): Promise<readonly Citation[]> {
  if (event !== 'done' || citationsOf(data).length > 0) return []
  return port.usedPassages(data).catch(() => [])
}
