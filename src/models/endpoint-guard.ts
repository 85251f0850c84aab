import { isIP } from 'node:net'
import { isLoopback } from '../base/loopback.ts'
import type { ConfigEnvironment } from '../config/config-environment.ts'
import type { Config } from '../config/schema.ts'
import { isWebUrl } from '../config/values.ts'
import { WbError } from '../contract/errors.ts'
import { providers } from '../contract/providers.ts'
import { type AddressRange, isInNetwork, parseAddress, parseNetwork, rangeOf } from './address-range.ts'

/** Host and port of a connection. The host is lowercase, without brackets and without a final dot. */
export interface Destination {
  readonly host: string
  readonly port: number
}

/**
 * Reason for a refusal: the range of the address, or `undisclosed`, which does not reveal whether the host has an
 * address.
 */
type RefusalReason = Exclude<AddressRange, 'public'> | 'undisclosed'

const refusalTexts: Readonly<Record<RefusalReason, string>> = {
  forbidden: "resolves to a link-local address or a cloud's metadata service",
  private: 'resolves to a private address',
  undisclosed: 'has no address, or an address that the runtime may not call',
}

/**
 * Thrown for an endpoint that the runtime must not connect to. The message is shown to callers and contains no IP
 * address. The cause is only logged.
 */
export class EndpointRefused extends Error {
  override readonly name = 'EndpointRefused'
  readonly hint: string

  constructor({ host, port }: Destination, reason: RefusalReason, cause?: unknown) {
    super(`${host} ${refusalTexts[reason]}`, { cause })
    const entry = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
    const instruction = `add "${entry}" to runtime.allowedEndpoints in the configuration.`
    if (reason === 'forbidden') this.hint = 'The runtime never calls such addresses. Use another host.'
    else if (reason === 'private') this.hint = `To allow it, ${instruction}`
    else this.hint = `Check the name. If it is in your own network, ${instruction}`
  }
}

/** Returns the refusal that caused a request to fail; undefined if the request failed for another reason. */
export function endpointRefusalIn(error: unknown): EndpointRefused | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof EndpointRefused) return cause
  return undefined
}

/** An endpoint that the operator allowed: a host or a network, with one port or all ports. */
interface AllowedEndpoint {
  readonly host?: string
  readonly network?: ReturnType<typeof parseNetwork>
  readonly port?: number
}

/**
 * Decides which endpoints the runtime may connect to. Always refuses link-local addresses and metadata services.
 * Refuses private addresses that the operator did not allow, if the guard blocks private addresses.
 *
 * @see docs/security.md#rule-14
 */
export class EndpointGuard {
  readonly #blocksPrivate: boolean
  readonly #exceptions: readonly AllowedEndpoint[]

  /** @param exceptions  allowed URLs, hosts with or without a port, addresses and networks */
  constructor({ blocksPrivate, exceptions }: { blocksPrivate: boolean; exceptions: readonly string[] }) {
    this.#blocksPrivate = blocksPrivate
    this.#exceptions = exceptions.map(parseException)
  }

  /**
   * Checks all addresses of a host. Throws if one of them is refused. If private addresses are blocked, the error for a
   * name with a private address is the same as for a name without an address, so that callers cannot discover internal
   * names.
   *
   * @throws EndpointRefused
   */
  check(destination: Destination, addresses: readonly string[]): void {
    for (const address of addresses) {
      const range = rangeOf(address)
      const isRefused =
        range === 'private' ? this.#blocksPrivate && !this.#allows(destination, address) : range !== 'public'
      if (isRefused)
        throw this.#refusal(
          destination,
          new EndpointRefused(destination, range as Exclude<AddressRange, 'public'>),
        )
    }
  }

  /** Returns the error to throw if a name could not be resolved. */
  resolutionFailure(destination: Destination, cause: unknown): unknown {
    const { code } = cause as { code?: unknown }
    return code === 'ENOTFOUND' || code === 'ENODATA' ? this.#refusal(destination, cause) : cause
  }

  #refusal(destination: Destination, cause: unknown): unknown {
    const isAddressOrLoopback = isIP(destination.host) !== 0 || isLoopback(destination.host)
    return this.#blocksPrivate && !isAddressOrLoopback
      ? new EndpointRefused(destination, 'undisclosed', cause)
      : cause
  }

  /**
   * Checks a URL if its host is an IP address or a name of this machine. Does not resolve other names, because their
   * addresses are checked when a connection is opened.
   *
   * @throws validation_error  the URL is refused; the message contains the name of the field
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
    const destination = destinationOf(new URL(url))
    const address = isIP(destination.host)
      ? destination.host
      : isLoopback(destination.host)
        ? '127.0.0.1'
        : undefined
    if (address !== undefined) this.check(destination, [address])
  }

  #allows({ host, port }: Destination, address: string): boolean {
    const parsed = parseAddress(address)
    return this.#exceptions.some(
      exception =>
        (exception.port === undefined || exception.port === port) &&
        (exception.network ? isInNetwork(parsed, exception.network) : exception.host === host),
    )
  }
}

/** Creates the guard for the endpoints of the configuration and of services. */
export function openEndpointGuard(config: Config, environment: ConfigEnvironment): EndpointGuard {
  const { auth, runtime } = config
  return new EndpointGuard({
    blocksPrivate:
      auth.mode !== 'disabled' ||
      runtime.environment === 'production' ||
      runtime.blockPrivateNetworkEndpoints,
    exceptions: [...runtime.allowedEndpoints, ...configuredEndpoints(config, environment)],
  })
}

/**
 * Creates the guard for URLs that a model chooses. It blocks this machine and its network, so that a model cannot
 * discover services there.
 */
export function openPublicGuard({ runtime }: Config): EndpointGuard {
  return new EndpointGuard({ blocksPrivate: true, exceptions: runtime.allowedEndpoints })
}

/** Returns the URLs in the configuration and in the variables `OLLAMA_BASE_URL` and `DOCLING_URL`. */
function configuredEndpoints(
  { auth, chat, controlPlane, runtime, seedWorkspaces }: Config,
  environment: ConfigEnvironment,
) {
  const usesDefaultOllama = chat.provider === 'ollama' && chat.baseUrl === null
  const urls = [
    environment.ollamaBaseUrl ?? (usesDefaultOllama ? providers.ollama.baseUrl : undefined),
    environment.docling.url,
    chat.baseUrl,
    auth.oidc?.issuer,
    auth.oidc?.jwksUri,
    controlPlane.driver === 'astra' ? controlPlane.endpoint : undefined,
    runtime.tracing.exporterUrl,
    ...seedWorkspaces.map(({ url }) => url),
  ]
  return urls.filter(url => url != null && isWebUrl(url)) as string[]
}

export function destinationOf({ hostname, port, protocol }: URL): Destination {
  return {
    host: normalizeHost(hostname),
    port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
  }
}

/** Normalizes a host: lowercase, without brackets and without a final dot. */
export function normalizeHost(host: string): string {
  return host.toLowerCase().replace(/^\[|\]$|\.$/g, '')
}

function parseException(text: string): AllowedEndpoint {
  if (text.includes('://')) return hostException(destinationOf(new URL(text)))
  if (text.includes('/') || isIP(text)) return { network: parseNetwork(text) }
  const [, host = text, port] = /^(.*?)(?::(\d+))?$/.exec(text) ?? []
  return hostException({ host: normalizeHost(host), port: port === undefined ? undefined : Number(port) })
}

function hostException({ host, port }: { host: string; port: number | undefined }): AllowedEndpoint {
  return { ...(isIP(host) ? { network: parseNetwork(host) } : { host }), port }
}
