import type { Clock } from '../../base/clock.ts'
import { pause } from '../../base/pause.ts'
import type { Client } from '../../client/client.ts'
import { Unreachable, unexpectedResponse } from '../../client/unreachable.ts'
import { auth, type DeviceTokens } from '../../contract/auth.ts'
import { WbError } from '../../contract/errors.ts'

/** A device sign-in that waits for the user's approval. */
export interface DeviceSignIn {
  readonly deviceCode: string
  /** Code that the user enters at the provider. */
  readonly userCode: string
  readonly verificationUri: string
  /** Verification address that includes the user code, if the provider returned one. */
  readonly verificationUriComplete: string | undefined
  readonly intervalMs: number
  /** Expiration of the code, in milliseconds since 1970. */
  readonly expiresAt: number
}

export interface PollOptions {
  readonly client: Client
  readonly clock: Clock
  readonly signal: AbortSignal
  /**
   * Called with the problem when the runtime or provider does not respond, and with undefined when it
   * responds again.
   */
  onProblemChange(reason: string | undefined): void
  /** Replaces the wait in tests. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<unknown>
}

/** Bounds and default of the polling interval. @see RFC 8628 section 3.2 */
const intervalSeconds = { min: 1, default: 5, max: 60 }
const lifetimeSecondsMax = 3_600
/** Maximum length of a user code. */
const userCodeCharsMax = 64

/** Increase of the polling interval at each `slow_down`, in milliseconds. @see RFC 8628 section 3.5 */
const slowDownMs = 5_000

/**
 * Starts a device sign-in.
 *
 * @throws WbError device_flow_not_supported, device_authorize_failed, identity_provider_unavailable
 */
export async function startDeviceLogin(client: Client, clock: Clock): Promise<DeviceSignIn> {
  const response = await client.call(auth.deviceAuthorize, {})
  const requiredFields = [response.device_code, response.user_code, response.verification_uri]
  const isValid =
    requiredFields.every(value => typeof value === 'string' && value !== '') &&
    response.user_code.length <= userCodeCharsMax
  if (!isValid || !(response.expires_in > 0))
    throw unexpectedResponse('the runtime returned an invalid sign-in')
  const seconds = Number.isFinite(response.interval) ? response.interval : intervalSeconds.default
  return {
    deviceCode: response.device_code,
    userCode: response.user_code,
    verificationUri: response.verification_uri,
    verificationUriComplete: response.verification_uri_complete,
    intervalMs: Math.min(Math.max(seconds, intervalSeconds.min), intervalSeconds.max) * 1_000,
    expiresAt: clock.now() + Math.min(response.expires_in, lifetimeSecondsMax) * 1_000,
  }
}

/**
 * Polls until the user approves or denies the sign-in, or the code expires. Continues while the runtime or
 * provider is temporarily unavailable.
 *
 * @throws WbError access_denied, expired_token, and other errors that end the sign-in
 * @see docs/requirements.md#S5.8-01, RFC 8628 sections 3.4 and 3.5
 */
export async function pollForTokens(signIn: DeviceSignIn, polling: PollOptions): Promise<DeviceTokens> {
  const { client, clock, signal, onProblemChange, pause: wait = pause } = polling
  let { intervalMs } = signIn
  for (;;) {
    await wait(intervalMs, signal)
    signal.throwIfAborted()
    if (clock.now() >= signIn.expiresAt)
      throw new WbError('expired_token', 'the code expired before you approved the sign-in')
    try {
      const body = { device_code: signIn.deviceCode }
      const tokens = await client.call(auth.deviceToken, { body }, { signal })
      onProblemChange(undefined)
      return tokens
    } catch (error) {
      signal.throwIfAborted()
      const code = error instanceof WbError ? error.code : undefined
      if (code === 'slow_down') intervalMs += slowDownMs
      if (code === 'slow_down' || code === 'authorization_pending') onProblemChange(undefined)
      else if (isTemporary(error)) onProblemChange((error as Error).message)
      else throw error
    }
  }
}

/** Returns true for an error after which polling continues. */
function isTemporary(error: unknown): boolean {
  if (error instanceof Unreachable) return true
  return error instanceof WbError && (error.status === 429 || error.status === 503)
}
