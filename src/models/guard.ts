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

/** An endpoint that may not be dialled. Its message goes on to the wire and names no address. */
export class EndpointRefused extends Error {
  override readonly name = 'EndpointRefused'
  readonly hint: string

  constructor({ host, port }: Destination, range: Exclude<AddressRange, 'public'>) {
    const isForbidden = range === 'forbidden'
    super(
      isForbidden
        ? `${host} leads to a link-local address or to a cloud's metadata service`
        : `${host} leads to a private address`,
    )
    const entry = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
    this.hint = isForbidden
      ? 'Such addresses are never dialled; use another host.'
      : `If it is meant, add "${entry}" to runtime.allowedEndpoints in the configuration.`
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
 * @see security decision 14
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
   * Check every address that a host leads to; one that is refused refuses all.
   *
   * @throws EndpointRefused
   */
  check(to: Destination, addresses: readonly string[]): void {
    for (const address of addresses) {
      const range = rangeOf(address)
      const isRefused =
        range === 'private' ? this.#blocksPrivate && !this.#allows(to, address) : range !== 'public'
      if (isRefused) throw new EndpointRefused(to, range as Exclude<AddressRange, 'public'>)
    }
  }

  /**
   * What a URL alone tells: an address as its host is checked, and the names that always mean this machine; where
   * other names lead is known when they are dialled.
   *
   * @throws validation_error  at the field
   */
  checkUrl(field: string, url: string): void {
    const to = destinationOf(new URL(url))
    const address = isIP(to.host) ? to.host : isLoopback(to.host) ? '127.0.0.1' : undefined
    if (address === undefined) return
    try {
      this.check(to, [address])
    } catch (error) {
      if (!(error instanceof EndpointRefused)) throw error
      throw new WbError('validation_error', `${field}: ${error.message}`, { hint: error.hint })
    }
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
