import type { Clock } from '../../base/clock.ts'
import type { Outbound } from '../outbound.ts'
import { LastFailures } from './last-failures.ts'
import { ModelDetails } from './model-details.ts'
import { LearnedTraits } from './traits.ts'

/** Everything that the runtime has learned about models since it started. */
export interface Learned {
  readonly traits: LearnedTraits
  readonly failures: LastFailures
  readonly details: ModelDetails
}

export function openLearned(parts: { readonly clock: Clock; readonly outbound: Outbound }): Learned {
  return {
    traits: new LearnedTraits(),
    failures: new LastFailures(parts.clock),
    details: new ModelDetails(parts),
  }
}
