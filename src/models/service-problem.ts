import { WbError } from '../contract/errors.ts'
import type { ServiceProblem } from '../contract/services.ts'
import { ProviderFailure } from './provider/provider-failure.ts'

/** Returns the problem in the last request to a model; null if it succeeded. */
export function problemOfLastRequest(failure: ProviderFailure | undefined): ServiceProblem | null {
  if (!failure) return null
  return { message: `the last request failed: ${failure.reason}`, hint: failure.facts.hint ?? 'Ask again.' }
}

/**
 * Returns why a service cannot be used.
 *
 * @param check  resolves everything that a request needs, without sending it
 * @returns null if no problem is known
 */
export async function findServiceProblem(check: () => Promise<unknown>): Promise<ServiceProblem | null> {
  try {
    await check()
    return null
  } catch (error) {
    if (error instanceof WbError) return { message: error.message, hint: error.hint }
    if (error instanceof ProviderFailure)
      return {
        message: error.reason,
        hint: error.facts.hint ?? 'Check its endpointBaseUrl and endpointPath.',
      }
    throw error
  }
}
