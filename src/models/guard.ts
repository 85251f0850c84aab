import { isIP } from 'node:net'
import { isLoopback } from '../base/loopback.ts'
import type { Environment } from '../config/environment.ts'
import type { Config } from '../config/schema.ts'
import { isWebUrl } from '../config/values.ts'
import { WbError } from '../contract/errors.ts'
import { providers } from '../contract/providers.ts'
import { type AddressRange, isWithin, networkOf, plainAddress, rangeOf } from './address-range.ts'

/** A host that is about to be dialled: lower case, no brackets, no dot at its end. */
export interface Destination {
  readonly host: string
  readonly port: number
}

/** Why an endpoint is refused: where it lies, or that it has no address or lies inside, which is not told apart. */
type Why = Exclude<AddressRange, 'public'> | 'unsaid'

const described: Readonly<Record<Why, string>> = {
  forbidden: "leads to a link-local address or to a cloud's metadata service",
  private: 'leads to a private address',
  unsaid: 'has no address, or one that may not be dialled',
}

/** An endpoint that may not be dialled. Its message goes on to the wire and names no address; its cause to the log. */
export class EndpointRefused extends Error {
  override readonly name = 'EndpointRefused'
  readonly hint: string

  constructor({ host, port }: Destination, why: Why, cause?: unknown) {
    super(`${host} ${described[why]}`, { cause })
    const entry = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
    const toAdd = `add "${entry}" to runtime.allowedEndpoints in the configuration.`
    if (why === 'forbidden') this.hint = 'Such addresses are never dialled; use another host.'
    else if (why === 'private') this.hint = `If it is meant, ${toAdd}`
    else this.hint = `Check the name; if it is one of your own network, ${toAdd}`
  }
}

/** What a failure of a request comes from, if that is a dial that was refused. */
export function refusalIn(error: unknown): EndpointRefused | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof EndpointRefused) return cause
  return undefined
}

/** An endpoint that the operator named: a host or a network, on one port or on all. */
interface Exception {
  readonly host?: string
  readonly network?: ReturnType<typeof networkOf>
  readonly port?: number
}

/**
 * Which endpoints may be dialled. Link-local addresses and metadata services never; private ones where nobody signs in
 * and the configuration does not forbid them, and those that the operator named.
 *
 * @see docs/security.md#rule-14
 */
export class EndpointGuard {
  readonly #blocksPrivate: boolean
  readonly #exceptions: readonly Exception[]

  /** @param exceptions  URLs, hosts with or without a port, addresses and networks */
  constructor({ blocksPrivate, exceptions }: { blocksPrivate: boolean; exceptions: readonly string[] }) {
    this.#blocksPrivate = blocksPrivate
    this.#exceptions = exceptions.map(exceptionOf)
  }

  /**
   * Check every address that a host leads to; one that is refused refuses all. Where private addresses are blocked, a
   * name that leads inside is refused like one that leads nowhere: whoever asks does not learn which names there are.
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

  /** What to fail with when a name has no address. */
  unresolved(to: Destination, cause: unknown): unknown {
    const { code } = cause as { code?: unknown }
    return code === 'ENOTFOUND' || code === 'ENODATA' ? this.#refusal(to, cause) : cause
  }

  #refusal(to: Destination, cause: unknown): unknown {
    const tellsNothing = isIP(to.host) !== 0 || isLoopback(to.host)
    return this.#blocksPrivate && !tellsNothing ? new EndpointRefused(to, 'unsaid', cause) : cause
  }

  /**
   * What a URL alone tells: an address as its host is checked, and the names that always mean this machine; where
   * other names lead is known when they are dialled.
   *
   * @throws validation_error  at the field
   */
  checkUrl(field: string, url: string): void {
    try {
      this.requireUrl(url)
    } catch (error) {
      if (!(error instanceof EndpointRefused)) throw error
      throw new WbError('validation_error', `${field}: ${error.message}`, { hint: error.hint })
    }
  }

  /** Like {@link checkUrl}, for a URL that no field holds. @throws EndpointRefused */
  requireUrl(url: string): void {
    const to = destinationOf(new URL(url))
    const address = isIP(to.host) ? to.host : isLoopback(to.host) ? '127.0.0.1' : undefined
    if (address !== undefined) this.check(to, [address])
  }

  #allows({ host, port }: Destination, address: string): boolean {
    const plain = plainAddress(address)
    return this.#exceptions.some(
      exception =>
        (exception.port === undefined || exception.port === port) &&
        (exception.network ? isWithin(plain, exception.network) : exception.host === host),
    )
  }
}

/** The guard that a configuration asks for. */
export function openGuard(config: Config, environment: Environment): EndpointGuard {
  const { auth, runtime } = config
  return new EndpointGuard({
    blocksPrivate:
      auth.mode !== 'disabled' ||
      runtime.environment === 'production' ||
      runtime.blockPrivateNetworkEndpoints,
    exceptions: [...runtime.allowedEndpoints, ...namedEndpoints(config, environment)],
  })
}

/** The guard of addresses that no person chose: this machine and its network are no places for a model to look around. */
export function publicGuard({ runtime }: Config): EndpointGuard {
  return new EndpointGuard({ blocksPrivate: true, exceptions: runtime.allowedEndpoints })
}

/** Endpoints that stand in the configuration, or in `OLLAMA_BASE_URL` and `DOCLING_URL`. */
function namedEndpoints(
  { auth, chat, controlPlane, runtime, seedWorkspaces }: Config,
  environment: Environment,
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

/** A host without what several spellings of it differ in. */
export function plainHost(host: string): string {
  return host.toLowerCase().replace(/^\[|\]$|\.$/g, '')
}

function exceptionOf(text: string): Exception {
  if (text.includes('://')) return ofHost(destinationOf(new URL(text)))
  if (text.includes('/') || isIP(text)) return { network: networkOf(text) }
  const [, host = text, port] = /^(.*?)(?::(\d+))?$/.exec(text) ?? []
  return ofHost({ host: plainHost(host), port: port === undefined ? undefined : Number(port) })
}

function ofHost({ host, port }: { host: string; port: number | undefined }): Exception {
  return { ...(isIP(host) ? { network: networkOf(host) } : { host }), port }
}
