import { isIP } from 'node:net'
import { isLoopback } from '../base/loopback.ts'
import type { ConfigEnvironment } from '../config/config-environment.ts'
import type { Config } from '../config/schema.ts'
import { isWebUrl } from '../config/values.ts'
import { WbError } from '../contract/errors.ts'
import { providers } from '../contract/providers.ts'
import { type AddressRange, isInNetwork, parseAddress, parseNetwork, rangeOf } from './address-range.ts'

/** Target of a connection. The host is lowercase, without brackets and without a final dot. */
export interface Destination {
  readonly host: string
  readonly port: number
}

/**
 * Reason for a refusal: the range of the address, or `unsaid`, which does not reveal whether the name has an
 * address.
 */
type RefusalReason = Exclude<AddressRange, 'public'> | 'unsaid'

const refusalTexts: Readonly<Record<RefusalReason, string>> = {
  forbidden: "resolves to a link-local address or a cloud's metadata service",
  private: 'resolves to a private address',
  unsaid: 'has no address, or an address that the runtime may not call',
}

/**
 * An endpoint that must not be connected to. The message is shown to callers and contains no address. The
 * cause is only logged.
 */
export class EndpointRefused extends Error {
  override readonly name = 'EndpointRefused'
  readonly hint: string

  constructor({ host, port }: Destination, why: RefusalReason, cause?: unknown) {
    super(`${host} ${refusalTexts[why]}`, { cause })
    const entry = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
    const toAdd = `add "${entry}" to runtime.allowedEndpoints in the configuration.`
    if (why === 'forbidden') this.hint = 'The runtime never calls such addresses; use another host.'
    else if (why === 'private') this.hint = `To allow it, ${toAdd}`
    else this.hint = `Check the name. If it is in your own network, ${toAdd}`
  }
}

/** Returns the refused connection that caused a failed request; undefined if there was another cause. */
export function endpointRefusalIn(error: unknown): EndpointRefused | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof EndpointRefused) return cause
  return undefined
}

/** An endpoint that the operator allowed: a host or a network, on one port or on all. */
interface AllowedEndpoint {
  readonly host?: string
  readonly network?: ReturnType<typeof parseNetwork>
  readonly port?: number
}

/**
 * Decides which endpoints may be connected to. Link-local addresses and metadata services are always refused.
 * Private addresses are allowed if authentication is disabled and the configuration does not block them, or
 * if the operator allowed them.
 *
 * @see docs/security.md#rule-14
 */
export class EndpointGuard {
  readonly #blocksPrivate: boolean
  readonly #exceptions: readonly AllowedEndpoint[]

  /** @param exceptions  URLs, hosts with or without a port, addresses and networks */
  constructor({ blocksPrivate, exceptions }: { blocksPrivate: boolean; exceptions: readonly string[] }) {
    this.#blocksPrivate = blocksPrivate
    this.#exceptions = exceptions.map(parseException)
  }

  /**
   * Checks all addresses of a host. One refused address refuses the host. If private addresses are blocked, a
   * name with a private address fails like a name without an address, so that callers cannot discover
   * internal names.
   *
   * @throws EndpointRefused
   */
  check(to: Destination, addresses: readonly string[]): void {
    for (const address of addresses) {
      const range = rangeOf(address)
      const isRefused =
        range === 'private' ? this.#blocksPrivate && !this.#allows(to, address) : range !== 'public'
      if (isRefused)
        throw this.#refusal(to, new EndpointRefused(to, range as Exclude<AddressRange, 'public'>))
    }
  }

  /** Returns the error for a name that has no address. */
  unresolved(to: Destination, cause: unknown): unknown {
    const { code } = cause as { code?: unknown }
    return code === 'ENOTFOUND' || code === 'ENODATA' ? this.#refusal(to, cause) : cause
  }

  #refusal(to: Destination, cause: unknown): unknown {
    const isOpaque = isIP(to.host) !== 0 || isLoopback(to.host)
    return this.#blocksPrivate && !isOpaque ? new EndpointRefused(to, 'unsaid', cause) : cause
  }

  /**
   * Checks a URL without resolving its host: an IP address, or a name that always means this machine. Other
   * names are checked when a connection is opened.
   *
   * @throws validation_error  names the field
   */
  checkUrl(field: string, url: string): void {
    try {
      this.requireUrl(url)
    } catch (error) {
      if (!(error instanceof EndpointRefused)) throw error
      throw new WbError('validation_error', `${field}: ${error.message}`, { hint: error.hint })
    }
  }

  /**
   * Like {@link checkUrl}, for a URL that is not in a field.
   *
   * @throws EndpointRefused
   */
  requireUrl(url: string): void {
    const to = destinationOf(new URL(url))
    const address = isIP(to.host) ? to.host : isLoopback(to.host) ? '127.0.0.1' : undefined
    if (address !== undefined) this.check(to, [address])
  }

  #allows({ host, port }: Destination, address: string): boolean {
    const plain = parseAddress(address)
    return this.#exceptions.some(
      exception =>
        (exception.port === undefined || exception.port === port) &&
        (exception.network ? isInNetwork(plain, exception.network) : exception.host === host),
    )
  }
}

/** Opens the guard for the endpoints of the configuration and of services. */
export function openEndpointGuard(config: Config, environment: ConfigEnvironment): EndpointGuard {
  const { auth, runtime } = config
  return new EndpointGuard({
    blocksPrivate:
      auth.mode !== 'disabled' ||
      runtime.environment === 'production' ||
      runtime.blockPrivateNetworkEndpoints,
    exceptions: [...runtime.allowedEndpoints, ...namedEndpoints(config, environment)],
  })
}

/**
 * Opens the guard for addresses that a model chooses. It blocks this machine and its network, so that a model
 * cannot explore them.
 */
export function openPublicGuard({ runtime }: Config): EndpointGuard {
  return new EndpointGuard({ blocksPrivate: true, exceptions: runtime.allowedEndpoints })
}

/** Returns the endpoints in the configuration, and in `OLLAMA_BASE_URL` and `DOCLING_URL`. */
function namedEndpoints(
  { auth, chat, controlPlane, runtime, seedWorkspaces }: Config,
  environment: ConfigEnvironment,
) {
  const isOwnOllama = chat.provider === 'ollama' && chat.baseUrl === null
  const named = [
    environment.ollamaBaseUrl ?? (isOwnOllama ? providers.ollama.baseUrl : undefined),
    environment.docling.url,
    chat.baseUrl,
    auth.oidc?.issuer,
    auth.oidc?.jwksUri,
    controlPlane.driver === 'astra' ? controlPlane.endpoint : undefined,
    runtime.tracing.exporterUrl,
    ...seedWorkspaces.map(({ url }) => url),
  ]
  return named.filter(url => url != null && isWebUrl(url)) as string[]
}

export function destinationOf({ hostname, port, protocol }: URL): Destination {
  return {
    host: plainHost(hostname),
    port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
  }
}

/** Normalizes a host: lowercase, without brackets and without a final dot. */
export function plainHost(host: string): string {
  return host.toLowerCase().replace(/^\[|\]$|\.$/g, '')
}

function parseException(text: string): AllowedEndpoint {
  if (text.includes('://')) return hostException(destinationOf(new URL(text)))
  if (text.includes('/') || isIP(text)) return { network: parseNetwork(text) }
  const [, host = text, port] = /^(.*?)(?::(\d+))?$/.exec(text) ?? []
  return hostException({ host: plainHost(host), port: port === undefined ? undefined : Number(port) })
}

function hostException({ host, port }: { host: string; port: number | undefined }): AllowedEndpoint {
  return { ...(isIP(host) ? { network: parseNetwork(host) } : { host }), port }
}
