import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { RowStore } from '../../storage/rows.ts'
import type { Presented, Verified, Verifier } from '../authenticate.ts'

/** Verifies API keys. @see specification 5.2, security decision 10 */
export class ApiKeyVerifier implements Verifier {
  constructor(readonly parts: { rows: RowStore; clock: Clock; log: Log }) {}

  verify(_token: string, _presented: Presented): Promise<Verified> | undefined {
    throw new Error('not written')
  }

  /** Keep what is known of when keys were last used. */
  async close(): Promise<void> {}
}
