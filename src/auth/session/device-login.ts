import type { Caller } from '../../access/caller.ts'
import type { Subject } from '../../access/subject.ts'
import type { Clock } from '../../base/clock.ts'
import { auth, type DeviceTokens, deviceTokenErrors } from '../../contract/auth.ts'
import { WbError } from '../../contract/errors.ts'
import type { JwtVerifier } from '../oidc/jwt-verifier.ts'
import type { OidcClient } from '../oidc/protocol.ts'
import type { IdentityProvider } from '../oidc/provider.ts'
import { hashSecret } from '../secret-hash.ts'
import { type IssuedTokens, type TokenRenewer, verifyIssuedTokens } from './issued-tokens.ts'
import type { Sealer } from './sealer.ts'
import { MemoryRenewals } from './shared-renewals.ts'
import type { SignInTrail } from './sign-in-trail.ts'

export interface DeviceLoginDependencies {
  readonly client: Pick<OidcClient, 'clientId'>
  readonly provider: Pick<IdentityProvider, 'hasDeviceEndpoint' | 'authorizeDevice' | 'exchangeDeviceCode'>
  readonly verifier: Pick<JwtVerifier, 'check'>
  readonly renewer: TokenRenewer
  readonly sealer: Sealer
  readonly trail: SignInTrail
  readonly clock: Clock
}

/** Content of the sealed refresh token of a device: the provider's refresh token, its subject and its client. */
interface SealedRefreshToken {
  readonly refreshToken: string
  readonly subject: string
  readonly clientId: string
}

/** Token response for a device, and the subject of the tokens. */
interface DeviceTokenReply {
  readonly reply: DeviceTokens
  readonly subject: Subject
}

/** Purpose of the sealed tokens. A token cannot be opened for another purpose. */
const sealPurpose = 'device refresh'

const DeviceAuthorizationResponse = auth.deviceAuthorize.replies[200]

/**
 * Maximum length of a device code. Longer codes are invalid, and are not sent to the provider.
 */
const deviceCodeCharsMax = 4_096

/**
 * Default interval between polls, for providers that do not specify an interval.
 *
 * @see RFC 8628 3.2
 */
const intervalSecondsDefault = 5

/**
 * Sign-in of a device without a browser.
 *
 * @see docs/requirements.md#S4.3-14, docs/requirements.md#S5.8-01, docs/security.md#rule-13, RFC 8628
 */
export class DeviceLogin {
  readonly #renewals: MemoryRenewals<DeviceTokenReply>

  constructor(private readonly deps: DeviceLoginDependencies) {
    this.#renewals = new MemoryRenewals({
      clock: deps.clock,
      keyOf: ({ reply }) => hashSecret(reply.refresh_token!),
      lifetimeSeconds: ({ reply }) => reply.expires_in,
    })
  }

  /**
   * Starts a sign-in. Returns the instructions for the user, as the provider sends them.
   *
   * @throws device_flow_not_supported, device_authorize_failed, identity_provider_unavailable
   */
  authorize(caller: Caller) {
    const { provider, trail } = this.deps
    return trail.recordFailures(caller, { action: 'auth.device.authorize' }, async () => {
      await this.#checkSupport()
      const response = DeviceAuthorizationResponse.safeParse({
        interval: intervalSecondsDefault,
        ...(await provider.authorizeDevice()),
      })
      if (!response.success)
        throw new WbError('device_authorize_failed', 'the identity provider did not start the sign-in')
      trail.note(caller, 'auth.device.authorize', undefined, { user_code: response.data.user_code })
      return response.data
    })
  }

  /**
   * Returns the provider's tokens, with a sealed refresh token, once the user has approved the sign-in.
   *
   * @throws authorization_pending, slow_down, access_denied, expired_token, invalid_grant  when the provider
   *   returns this code
   * @throws device_token_failed  when the provider returns another code, or a token that this API does not
   *   accept
   */
  token(deviceCode: string, caller: Caller): Promise<DeviceTokens> {
    const { provider, verifier, trail } = this.deps
    const step = {
      action: 'auth.device.token',
      expectedCodes: ['authorization_pending', 'slow_down'],
    } as const
    return trail.recordFailures(caller, step, async () => {
      await this.#checkSupport()
      if (deviceCode.length > deviceCodeCharsMax) throw pollError('invalid_grant')
      const tokens = await provider.exchangeDeviceCode(deviceCode)
      if ('errorCode' in tokens) throw pollError(tokens.errorCode)
      const issued = await verifyIssuedTokens(verifier, tokens, { code: 'device_token_failed' })
      const { reply, subject } = this.#toReply(issued, tokens.refreshToken)
      trail.note(caller, step.action, subject)
      return reply
    })
  }

  /**
   * Renews the tokens of a device. Concurrent requests with the same token get the same response.
   *
   * @throws invalid_grant            when this runtime did not issue the token
   * @throws refresh_failed           when the provider rejects the token
   * @throws token_validation_failed  when this API does not accept the new token, or the token has another subject
   */
  async refresh(sealed: string, caller: Caller): Promise<DeviceTokens> {
    const { renewer, trail } = this.deps
    const action = 'auth.device.refresh'
    const content = this.#openToken(sealed)
    const { reply, subject } = await trail.recordFailures(
      caller,
      { action, subjectId: content?.subject },
      async () => {
        await this.#checkSupport()
        if (!content) throw new WbError('invalid_grant', 'the refresh token was not issued by this runtime')
        return this.#renewals.once(hashSecret(sealed), async () =>
          this.#toReply(await renewer.renew(content.refreshToken, content.subject), content.refreshToken),
        )
      },
    )
    trail.note(caller, action, subject)
    return reply
  }

  /** @throws device_flow_not_supported */
  async #checkSupport(): Promise<void> {
    if (!(await this.deps.provider.hasDeviceEndpoint()))
      throw new WbError('device_flow_not_supported', 'the identity provider has no device endpoint')
  }

  #toReply(
    { tokens, verified: { subject } }: IssuedTokens,
    previousRefreshToken: string | undefined,
  ): DeviceTokenReply {
    const { accessToken, tokenType, expiresInSeconds, refreshToken = previousRefreshToken, scope } = tokens
    const reply = {
      access_token: accessToken,
      token_type: tokenType,
      ...(expiresInSeconds !== undefined && { expires_in: expiresInSeconds }),
      ...(refreshToken !== undefined && { refresh_token: this.#sealToken(refreshToken, subject) }),
      ...(scope !== undefined && { scope }),
    }
    return { reply, subject }
  }

  #sealToken(refreshToken: string, subject: Subject): string {
    const { sealer, client } = this.deps
    const content: SealedRefreshToken = { refreshToken, subject: subject.id, clientId: client.clientId }
    return sealer.seal(sealPurpose, JSON.stringify(content))
  }

  /** Returns undefined if the token was issued by another runtime or for another client. */
  #openToken(sealed: string): SealedRefreshToken | undefined {
    const { sealer, client } = this.deps
    const content = JSON.parse(sealer.open(sealPurpose, sealed) ?? 'null') as SealedRefreshToken | null
    return content?.clientId === client.clientId ? content : undefined
  }
}

/** Returns the error of an unsuccessful poll, with the provider's code if the device flow defines it. */
function pollError(errorCode: string): WbError {
  const code = deviceTokenErrors.find(known => known === errorCode)
  return code
    ? new WbError(code, messages[code])
    : new WbError('device_token_failed', 'the identity provider did not complete the sign-in', { errorCode })
}

const messages: Readonly<Record<(typeof deviceTokenErrors)[number], string>> = {
  authorization_pending: 'the sign-in has not been approved yet',
  slow_down: 'the sign-in has not been approved yet, and the device polls too often',
  access_denied: 'the sign-in was denied',
  expired_token: 'the device code has expired',
  invalid_grant: 'the identity provider does not know the device code',
}
