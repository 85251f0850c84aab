import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'
import type { Outbound } from '../outbound.ts'
import { LastFailures } from './last-failures.ts'
import { ModelDetails } from './model-details.ts'
import type { ModelTraits } from './model-traits.ts'

/** Maximum number of models whose traits are stored. */
const modelsMax = 1_000

/** Properties and failures of models that the runtime has learned of since it started. */
export interface LearnedModels {
  /** Traits learned from providers' error messages, by model and endpoint. */
  readonly traits: LRUCache<string, ModelTraits>
  readonly failures: LastFailures
  readonly details: ModelDetails
}

export function openLearnedModels(deps: {
  readonly clock: Clock
  readonly outbound: Outbound
}): LearnedModels {
  return {
    traits: new LRUCache({ max: modelsMax }),
    failures: new LastFailures(deps.clock),
    details: new ModelDetails(deps),
  }
}
