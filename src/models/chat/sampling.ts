import type { LlmService } from '../../contract/services.ts'
import type { SamplingSettings } from './completion.ts'

/** Returns the sampling settings that a service or an agent sets. */
export function toSamplingSettings({
  temperature,
  topP,
  reasoningEffort,
  stop,
}: Pick<LlmService, 'temperature' | 'topP' | 'reasoningEffort' | 'stop'>): SamplingSettings {
  return {
    ...(temperature != null && { temperature }),
    ...(topP != null && { topP }),
    ...(reasoningEffort != null && { reasoningEffort }),
    ...(stop != null && { stop }),
  }
}
