import type { Caller } from '../../access/caller.ts'
import type { Subject } from '../../access/subject.ts'
import type { Clock } from '../../base/clock.ts'
import { auth, type DeviceTokens, deviceTokenErrors } from '../../contract/auth.ts'
import { WbError } from '../../contract/errors.ts'
import { fingerprint } from '../hash.ts'
import type { JwtVerifier } from '../oidc/jwt.ts'
import type { OidcClient } from '../oidc/protocol.ts'
import type { IdentityProvider } from '../oidc/provider.ts'
import { checkIssued, type Issued, type Renewer } from './issued.ts'
import { SharedRenewals } from './renewals.ts'
import type { Seal } from './seal.ts'
import type { SignInTrail } from './trail.ts'

export interface DeviceLoginParts {
  readonly client: Pick<OidcClient, 'clientId'>
  readonly provider: Pick<IdentityProvider, 'hasDeviceEndpoint' | 'authorizeDevice' | 'exchangeDeviceCode'>
  readonly verifier: Pick<JwtVerifier, 'check'>
  readonly renewer: Renewer
  readonly seal: Seal
  readonly trail: SignInTrail
  readonly clock: Clock
}

/** What a device holds sealed: the provider's refresh token, and whose it is. */
interface Held {
  readonly refreshToken: string
  readonly subject: string
  readonly clientId: string
}

/** What a device was given, and whose it is. */
interface HandedOut {
  readonly reply: DeviceTokens
  readonly subject: Subject
}

/** What was sealed for devices is good for nothing else. */
const purpose = 'device refresh'

const Envelope = auth.deviceAuthorize.replies[200]

/** Longer ones are issued by nobody, and not passed on. */
const deviceCodeCharsMax = 4_096

/** Between polls, where a provider says nothing. @see RFC 8628 3.2 */
const intervalSeconds = 5

/**
 * The sign-in of a device without a browser.
 *
 * @see docs/requirements.md#S4.3-14, docs/requirements.md#S5.8-01, docs/security.md#rule-13, RFC 8628
 */
export class DeviceLogin {
  readonly #renewals: SharedRenewals<HandedOut>

  constructor(private readonly parts: DeviceLoginParts) {
    this.#renewals = new SharedRenewals({
      clock: parts.clock,
      keyOf: ({ reply }) => fingerprint(reply.refresh_token!),
      lifetimeSeconds: ({ reply }) => reply.expires_in,
    })
  }

  /**
   * Start a sign-in: what the person is shown, as the provider sends it.
   *
   * @throws device_flow_not_supported, device_authorize_failed, identity_provider_unavailable
   */
  authorize(caller: Caller) {
    const { provider, trail } = this.parts
    return trail.watch(caller, { action: 'auth.device.authorize' }, async () => {
      await this.#checkSupport()
      const sent = Envelope.safeParse({ interval: intervalSeconds, ...(await provider.authorizeDevice()) })
      if (!sent.success)
        throw new WbError('device_authorize_failed', 'the identity provider does not start this sign-in')
      trail.note(caller, 'auth.device.authorize', undefined, { user_code: sent.data.user_code })
      return sent.data
    })
  }

  /**
   * Ask whether the person has approved, and hand out what the provider issued, its refresh token sealed.
   *
   * @throws authorization_pending, slow_down, access_denied, expired_token, invalid_grant  as the provider says
   * @throws device_token_failed  it says something else, or issued a token that the API would not accept
   */
  token(deviceCode: string, caller: Caller): Promise<DeviceTokens> {
    const { provider, verifier, trail } = this.parts
    const act = { action: 'auth.device.token', unspoken: ['authorization_pending', 'slow_down'] } as const
    return trail.watch(caller, act, async () => {
      await this.#checkSupport()
      if (deviceCode.length > deviceCodeCharsMax) throw refusalOf('invalid_grant')
      const tokens = await provider.exchangeDeviceCode(deviceCode)
      if ('refused' in tokens) throw refusalOf(tokens.refused)
      const issued = await checkIssued(verifier, tokens, { code: 'device_token_failed' })
      const { reply, subject } = this.#handOut(issued, tokens.refreshToken)
      trail.note(caller, act.action, subject)
      return reply
    })
  }

  /**
   * Renew the tokens of a device. Processes that ask with the same token at about the same time get the same answer.
   *
   * @throws invalid_grant            the token was not handed out here
   * @throws refresh_failed           the provider refuses
   * @throws token_validation_failed  the API would not accept the new token, or it is of another subject
   */
  async refresh(sealed: string, caller: Caller): Promise<DeviceTokens> {
    const { renewer, trail } = this.parts
    const action = 'auth.device.refresh'
    const held = this.#open(sealed)
    const { reply, subject } = await trail.watch(caller, { action, subjectId: held?.subject }, async () => {
      await this.#checkSupport()
      if (!held) throw new WbError('invalid_grant', 'the refresh token was not handed out by this runtime')
      return this.#renewals.once(fingerprint(sealed), async () =>
        this.#handOut(await renewer.renew(held.refreshToken, held.subject), held.refreshToken),
      )
    })
    trail.note(caller, action, subject)
    return reply
  }

  /** @throws device_flow_not_supported */
  async #checkSupport(): Promise<void> {
    if (!(await this.parts.provider.hasDeviceEndpoint()))
      throw new WbError('device_flow_not_supported', 'the identity provider has no device endpoint')
  }

  #handOut({ tokens, verified: { subject } }: Issued, before: string | undefined): HandedOut {
    const { accessToken, tokenType, expiresInSeconds, refreshToken = before, scope } = tokens
    const reply = {
      access_token: accessToken,
      token_type: tokenType,
      ...(expiresInSeconds !== undefined && { expires_in: expiresInSeconds }),
      ...(refreshToken !== undefined && { refresh_token: this.#close(refreshToken, subject) }),
      ...(scope !== undefined && { scope }),
    }
    return { reply, subject }
  }

  #close(refreshToken: string, subject: Subject): string {
    const { seal, client } = this.parts
    const held: Held = { refreshToken, subject: subject.id, clientId: client.clientId }
    return seal.seal(purpose, JSON.stringify(held))
  }

  /** Undefined for what was not handed out here, or for another client. */
  #open(sealed: string): Held | undefined {
    const { seal, client } = this.parts
    const held = JSON.parse(seal.open(purpose, sealed) ?? 'null') as Held | null
    return held?.clientId === client.clientId ? held : undefined
  }
}

/** A poll that got nothing, in the words of the provider where a device knows them. */
function refusalOf(refused: string): WbError {
  const known = deviceTokenErrors.find(code => code === refused)
  return known
    ? new WbError(known, messages[known])
    : new WbError('device_token_failed', 'the identity provider does not finish this sign-in', { refused })
}

const messages: Readonly<Record<(typeof deviceTokenErrors)[number], string>> = {
  authorization_pending: 'the sign-in was not approved yet',
  slow_down: 'the sign-in was not approved yet, and is asked after too often',
  access_denied: 'the sign-in was refused',
  expired_token: 'the device code has expired',
  invalid_grant: 'the identity provider does not know the device code',
}
