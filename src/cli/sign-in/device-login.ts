import type { Clock } from '../../base/clock.ts'
import { pause } from '../../base/pause.ts'
import type { Client } from '../../client/client.ts'
import { Unreachable, unexpectedResponse } from '../../client/unreachable.ts'
import { auth, type DeviceTokens } from '../../contract/auth.ts'
import { WbError } from '../../contract/errors.ts'

/** A sign-in that waits for a person. */
export interface Started {
  readonly deviceCode: string
  /** What the person types at the provider. */
  readonly userCode: string
  readonly verificationUri: string
  /** The same with the code in it. */
  readonly verificationUriComplete: string | undefined
  readonly intervalMs: number
  /** When the code ends, in milliseconds since 1970. */
  readonly expiresAt: number
}

export interface Polling {
  readonly client: Client
  readonly clock: Clock
  readonly signal: AbortSignal
  /** The runtime or the provider does not answer, in words; undefined when it does again. */
  onTrouble(reason: string | undefined): void
  /** Stands for time in tests. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<unknown>
}

/** Between polls, whatever a runtime says. @see RFC 8628 3.2 */
const intervalSeconds = { least: 1, usual: 5, most: 60 }
const lifeSecondsMax = 3_600
/** Of a code that a person types. */
const codeCharsMax = 64

/** By how much the interval grows at each `slow_down`. @see RFC 8628 3.5 */
const slowDownMs = 5_000

/** @throws WbError device_flow_not_supported, device_authorize_failed, identity_provider_unavailable */
export async function startDeviceLogin(client: Client, clock: Clock): Promise<Started> {
  const sent = await client.call(auth.deviceAuthorize, {})
  const texts = [sent.device_code, sent.user_code, sent.verification_uri]
  const isSound =
    texts.every(text => typeof text === 'string' && text !== '') && sent.user_code.length <= codeCharsMax
  if (!isSound || !(sent.expires_in > 0))
    throw unexpectedResponse('the runtime began a sign-in that cannot be shown')
  const seconds = Number.isFinite(sent.interval) ? sent.interval : intervalSeconds.usual
  return {
    deviceCode: sent.device_code,
    userCode: sent.user_code,
    verificationUri: sent.verification_uri,
    verificationUriComplete: sent.verification_uri_complete,
    intervalMs: Math.min(Math.max(seconds, intervalSeconds.least), intervalSeconds.most) * 1_000,
    expiresAt: clock.now() + Math.min(sent.expires_in, lifeSecondsMax) * 1_000,
  }
}

/**
 * Ask until the person has approved or refused, or the code has ended. A runtime or provider that is away meanwhile is
 * asked on.
 *
 * @throws WbError access_denied, expired_token, and whatever ends the sign-in
 * @see docs/requirements.md#S5.8-01, RFC 8628 3.4, 3.5
 */
export async function pollForTokens(started: Started, polling: Polling): Promise<DeviceTokens> {
  const { client, clock, signal, onTrouble, pause: rest = pause } = polling
  let { intervalMs } = started
  for (;;) {
    await rest(intervalMs, signal)
    signal.throwIfAborted()
    if (clock.now() >= started.expiresAt)
      throw new WbError('expired_token', 'the code has ended before anybody approved it')
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
      else if (isPassing(error)) onTrouble((error as Error).message)
      else throw error
    }
  }
}

/** What may be otherwise at the next poll. */
function isPassing(error: unknown): boolean {
  if (error instanceof Unreachable) return true
  return error instanceof WbError && (error.status === 429 || error.status === 503)
}
