import { readFileSync } from 'node:fs'
import { hostFacts } from '../../base/host-facts.ts'
import { isLoopback } from '../../base/loopback.ts'
import { packageVersion } from '../../base/package.ts'
import type { Fetch } from '../../client/fetch.ts'
import type { NetworkOptions } from '../../client/node/network-options.ts'
import { type Network, openNetwork } from '../../client/node/transport.ts'
import { type ConnectionSettings, connectionSettings } from '../environment.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { resolveTypedPath } from '../resolve-typed-path.ts'
import { formatRetry, withRequestLog } from './request-log.ts'

/** Callbacks for events of a network connection. */
export interface NetworkObserver {
  /** Receives a log entry for each request. */
  onRequest?: (entry: string) => void
  /** Receives a message, at most once, if the major or minor version of the runtime differs from that of wb. */
  onVersionMismatch?: (line: string) => void
}

/** Address of a runtime, and its certificate (PEM) if it is on this machine. */
interface RuntimeAddress {
  readonly url: string
  readonly certificate?: string
}

/**
 * Connects to a runtime over the network.
 *
 * @throws UsageError  a proxy address is invalid, or a certificate file cannot be read
 */
export function connectOverNetwork(
  { url, certificate }: RuntimeAddress,
  io: Pick<Io, 'env' | 'cwd' | 'clock'>,
  observer: NetworkObserver,
): Network {
  const { onRequest, onVersionMismatch } = observer
  const { fetch, close } = openNetwork({
    ...networkOptions(new URL(url), io),
    certificate,
    userAgent: `workbase-cli/${packageVersion()} (${hostFacts.platform}; node v${hostFacts.nodeVersion})`,
    onRetry: onRequest && (retry => onRequest(formatRetry(retry))),
  })
  const loggedFetch = onRequest ? withRequestLog(fetch, onRequest, io.clock) : fetch
  return { fetch: onVersionMismatch ? withVersionCheck(loggedFetch, onVersionMismatch) : loggedFetch, close }
}

/** Returns the connection settings. Connections to this machine do not use proxies. */
function networkOptions(
  { protocol, hostname }: URL,
  { env, cwd }: Pick<Io, 'env' | 'cwd'>,
): Pick<NetworkOptions, 'proxies' | 'authorities' | 'idleTimeoutMs'> {
  const { proxies, authorities, idleTimeoutMs } = connectionSettings(env)
  return {
    idleTimeoutMs,
    proxies: isLoopback(hostname) ? undefined : proxies,
    authorities: protocol === 'https:' ? readCertificates(authorities, cwd) : [],
  }
}

/**
 * Reads additional certificates. Node ignores `NODE_EXTRA_CA_CERTS` when the caller passes authorities, so this
 * function reads both files.
 */
function readCertificates(
  { SSL_CERT_FILE, NODE_EXTRA_CA_CERTS }: ConnectionSettings['authorities'],
  cwd: string,
): string[] {
  if (!SSL_CERT_FILE) return []
  const files = Object.entries({ SSL_CERT_FILE, NODE_EXTRA_CA_CERTS })
  return files.flatMap(([name, path]) => (path ? [readCertificate(name, resolveTypedPath(cwd, path))] : []))
}

function readCertificate(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new UsageError(`${name} refers to ${path}, which cannot be read (${code})`, [
      `unset ${name}    connect without this certificate file`,
    ])
  }
}

/** Compares the `x-workbase-version` header of the first response with the version of wb, and reports a difference. */
function withVersionCheck(fetch: Fetch, report: (line: string) => void): Fetch {
  let isChecked = false
  return async (url, outgoing) => {
    const response = await fetch(url, outgoing)
    const line = isChecked ? undefined : describeVersions(response.headers.get('x-workbase-version'))
    isChecked = true
    if (line) report(line)
    return response
  }
}

/** Returns a message if the major or minor versions differ. Patch versions are compatible. */
function describeVersions(runtimeVersion: string | null): string | undefined {
  const cliVersion = packageVersion()
  const minor = /^\d{1,6}\.\d{1,6}(?=\.\d{1,6}(?:[-+][\w.+-]{1,40})?$)/
  const cliMinor = minor.exec(cliVersion)?.[0]
  const runtimeMinor = runtimeVersion === null ? undefined : minor.exec(runtimeVersion)?.[0]
  return runtimeMinor === undefined || runtimeMinor === cliMinor
    ? undefined
    : `  this is wb ${cliVersion}, but the runtime is ${runtimeVersion}`
}
