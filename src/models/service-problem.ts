import { WbError } from '../contract/errors.ts'
import type { ServiceProblem } from '../contract/services.ts'
import { ProviderFailure } from './provider/provider-failure.ts'

/** Returns the problem that caused the last request to a model to fail; null if it did not fail. */
export function problemOfLastRequest(failure: ProviderFailure | undefined): ServiceProblem | null {
  if (!failure) return null
  return { message: `the last request failed: ${failure.reason}`, hint: failure.facts.hint ?? 'Retry.' }
}

/**
 * Returns the reason why a service cannot be used; null if no problem is known.
 *
 * @param check  resolves the endpoint and the credential, without sending a request
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
        hint: error.facts.hint ?? 'Check endpointBaseUrl and endpointPath of the service.',
      }
    throw error
  }
}
