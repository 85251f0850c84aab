/** Of what a provider gives as its reason, as much as a person reads: it is searched for words. */
const toldCharsMax = 2_000

/** A request that came to nothing. Its message is ours; what the provider said is in `told` and in the cause. */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure'

  constructor(
    /** Completes a sentence about the service: `could not be reached`. */
    readonly reason: string,
    readonly facts: { readonly hint?: string; readonly providerStatus?: number } = {},
    /** What the provider gives as its reason; for us to read, and not to repeat. */
    readonly told: { readonly code?: string; readonly message?: string } = {},
    cause?: unknown,
  ) {
    super(reason, { cause })
  }
}

/** The reason of a refusal, in the form that OpenAI gave it and others took over. */
export function toldIn(error: unknown): ProviderFailure['told'] {
  if (typeof error !== 'object' || error === null) return {}
  const { code, message } = error as Record<string, unknown>
  return {
    ...(typeof code === 'string' ? { code } : {}),
    ...(typeof message === 'string' ? { message: message.slice(0, toldCharsMax) } : {}),
  }
}

/** A field of what a provider answered; undefined where that is no object. */
export function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
}
