import type { LlmService } from '../../contract/services.ts'
import type { Sampling } from './completion.ts'

/** Returns the sampling settings that a service or an agent sets. */
export function samplingOf({
  temperature,
  topP,
  reasoningEffort,
  stop,
}: Pick<LlmService, 'temperature' | 'topP' | 'reasoningEffort' | 'stop'>): Sampling {
  return {
    ...(temperature != null && { temperature }),
    ...(topP != null && { topP }),
    ...(reasoningEffort != null && { reasoningEffort }),
    ...(stop != null && { stop }),
  }
}
