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
  /** Verification address that includes the code. */
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
  onTrouble(reason: string | undefined): void
  /** Replaces the wait in tests. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<unknown>
}

/** Bounds and default of the polling interval. @see RFC 8628 section 3.2 */
const intervalSeconds = { least: 1, usual: 5, most: 60 }
const lifeSecondsMax = 3_600
/** Maximum length of a user code. */
const userCodeCharsMax = 64

/** Increase of the polling interval at each `slow_down`, in milliseconds. @see RFC 8628 section 3.5 */
const slowDownMs = 5_000

/** @throws WbError device_flow_not_supported, device_authorize_failed, identity_provider_unavailable */
export async function startDeviceLogin(client: Client, clock: Clock): Promise<DeviceSignIn> {
  const response = await client.call(auth.deviceAuthorize, {})
  const texts = [response.device_code, response.user_code, response.verification_uri]
  const isSound =
    texts.every(text => typeof text === 'string' && text !== '') &&
    response.user_code.length <= userCodeCharsMax
  if (!isSound || !(response.expires_in > 0))
    throw unexpectedResponse('the runtime returned an invalid sign-in')
  const seconds = Number.isFinite(response.interval) ? response.interval : intervalSeconds.usual
  return {
    deviceCode: response.device_code,
    userCode: response.user_code,
    verificationUri: response.verification_uri,
    verificationUriComplete: response.verification_uri_complete,
    intervalMs: Math.min(Math.max(seconds, intervalSeconds.least), intervalSeconds.most) * 1_000,
    expiresAt: clock.now() + Math.min(response.expires_in, lifeSecondsMax) * 1_000,
  }
}

/**
 * Polls until the user approves or denies the sign-in, or the code expires. Continues while the runtime or
 * provider is temporarily unavailable.
 *
 * @throws WbError access_denied, expired_token, and other errors that end the sign-in
 * @see docs/requirements.md#S5.8-01, RFC 8628 sections 3.4 and 3.5
 */
export async function pollForTokens(started: DeviceSignIn, polling: PollOptions): Promise<DeviceTokens> {
  const { client, clock, signal, onTrouble, pause: rest = pause } = polling
  let { intervalMs } = started
  for (;;) {
    await rest(intervalMs, signal)
    signal.throwIfAborted()
    if (clock.now() >= started.expiresAt)
      throw new WbError('expired_token', 'the code expired before you approved the sign-in')
    try {
      const body = { device_code: started.deviceCode }
      const tokens = await client.call(auth.deviceToken, { body }, { signal })
      onTrouble(undefined)
      return tokens
    } catch (error) {
      signal.throwIfAborted()
      const answer = error instanceof WbError ? error.code : undefined
      if (answer === 'slow_down') intervalMs += slowDownMs
      if (answer === 'slow_down' || answer === 'authorization_pending') onTrouble(undefined)
      else if (isTemporary(error)) onTrouble((error as Error).message)
      else throw error
    }
  }
}

/** Returns true for an error that may not occur at the next poll. */
function isTemporary(error: unknown): boolean {
  if (error instanceof Unreachable) return true
  return error instanceof WbError && (error.status === 429 || error.status === 503)
}
