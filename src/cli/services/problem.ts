import type { ServiceProblem } from '../../contract/services.ts'
import type { Output } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import type { Service } from './kinds.ts'
import type { ServiceCalls } from './service-calls.ts'

/**
 * Warns if a service that was just stored cannot be used. Errors of the check are ignored, because the service is stored
 * already.
 */
export async function warnOfProblem(
  services: Pick<ServiceCalls, 'problemOf'>,
  service: Service,
  output: Pick<Output, 'warn'>,
): Promise<void> {
  const problem = await services.problemOf(service).catch(() => null)
  if (!problem) return
  output.warn(`  ! ${plainLine(problem.message)}`)
  output.warn(`    ${plainLine(problem.hint)}`)
}

/** Formats a problem as one line. */
export function problemLine({ message, hint }: ServiceProblem): string {
  return `${plainLine(message)}. ${plainLine(hint)}`
}
