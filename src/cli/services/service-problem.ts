import type { ServiceProblem } from '../../contract/services.ts'
import type { Output } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import type { ServiceCalls } from './service-calls.ts'
import type { Service } from './service-types.ts'

/**
 * Warns if a stored service cannot be used. Errors of this check are ignored, because the service is already stored.
 */
export async function warnOfProblem(
  services: Pick<ServiceCalls, 'findProblem'>,
  service: Service,
  output: Pick<Output, 'warn'>,
): Promise<void> {
  const problem = await services.findProblem(service).catch(() => null)
  if (!problem) return
  output.warn(`  ! ${plainLine(problem.message)}`)
  output.warn(`    ${plainLine(problem.hint)}`)
}

/** Formats a problem as one line. */
export function problemLine({ message, hint }: ServiceProblem): string {
  return `${plainLine(message)}. ${plainLine(hint)}`
}
