import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'
import type { Outbound } from '../outbound.ts'
import { LastFailures } from './last-failures.ts'
import { ModelDetails } from './model-details.ts'
import type { ModelTraits } from './model-traits.ts'

/** Maximum number of models whose traits are stored. */
const modelsMax = 1_000

/** Facts about models that the runtime has learned since it started. */
export interface LearnedModels {
  /** Traits learned from refusals, by model and endpoint. */
  readonly traits: LRUCache<string, ModelTraits>
  readonly failures: LastFailures
  readonly details: ModelDetails
}

export function openLearnedModels(parts: {
  readonly clock: Clock
  readonly outbound: Outbound
}): LearnedModels {
  return {
    traits: new LRUCache({ max: modelsMax }),
    failures: new LastFailures(parts.clock),
    details: new ModelDetails(parts),
  }
}
