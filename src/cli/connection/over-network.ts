import { readFileSync } from 'node:fs'
import { hostFacts } from '../../base/host-facts.ts'
import { isLoopback } from '../../base/loopback.ts'
import { packageVersion } from '../../base/package.ts'
import type { Fetch } from '../../client/fetch.ts'
import type { NetworkOptions } from '../../client/node/network-options.ts'
import { type Network, network } from '../../client/node/transport.ts'
import { type ConnectionSettings, connectionSettings } from '../environment.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { resolveTypedPath } from '../resolve-typed-path.ts'
import { formatRetry, withRequestLog } from './request-log.ts'

/** Observers of a network connection. */
export interface NetworkObserver {
  /** Receives a log entry for each request. */
  wire?: (block: string) => void
  /** Receives one message if the runtime has another version. */
  otherVersion?: (line: string) => void
}

/** Address of a runtime, and its certificate (PEM) if it is on this machine. */
interface Place {
  readonly url: string
  readonly certificate?: string
}

/**
 * Connects to a runtime over the network.
 *
 * @throws UsageError  a proxy address is invalid, or a certificate file cannot be read
 */
export function connectOverNetwork(
  { url, certificate }: Place,
  io: Pick<Io, 'env' | 'cwd' | 'clock'>,
  heard: NetworkObserver,
): Network {
  const { wire, otherVersion } = heard
  const { fetch, close } = network({
    ...reaching(new URL(url), io),
    certificate,
    userAgent: `workbase-cli/${packageVersion()} (${hostFacts.platform}; node v${hostFacts.nodeVersion})`,
    onRetry: wire && (retry => wire(formatRetry(retry))),
  })
  const logged = wire ? withRequestLog(fetch, wire, io.clock) : fetch
  return { fetch: otherVersion ? withVersionCheck(logged, otherVersion) : logged, close }
}

/** Returns the connection settings. Proxies are not used for this machine. */
function reaching(
  { protocol, hostname }: URL,
  { env, cwd }: Pick<Io, 'env' | 'cwd'>,
): Pick<NetworkOptions, 'proxies' | 'authorities' | 'idleTimeoutMs'> {
  const { proxies, authorities, idleTimeoutMs } = connectionSettings(env)
  return {
    idleTimeoutMs,
    proxies: isLoopback(hostname) ? undefined : proxies,
    authorities: protocol === 'https:' ? certificatesIn(authorities, cwd) : [],
  }
}

/**
 * Reads additional certificates. Node ignores `NODE_EXTRA_CA_CERTS` if other authorities are given, so both
 * files are read.
 */
function certificatesIn(
  { SSL_CERT_FILE, NODE_EXTRA_CA_CERTS }: ConnectionSettings['authorities'],
  cwd: string,
): string[] {
  if (!SSL_CERT_FILE) return []
  const files = Object.entries({ SSL_CERT_FILE, NODE_EXTRA_CA_CERTS })
  return files.flatMap(([name, path]) => (path ? [contentOf(name, resolveTypedPath(cwd, path))] : []))
}

function contentOf(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new UsageError(`${name} names ${path}, which cannot be read (${code})`, [
      `unset ${name}    uses the certificate authorities of Node`,
    ])
  }
}

/** Reports once if the `x-workbase-version` of a response differs. */
function withVersionCheck(fetch: Fetch, tell: (line: string) => void): Fetch {
  let compared = false
  return async (url, outgoing) => {
    const answer = await fetch(url, outgoing)
    const line = compared ? undefined : versionLine(answer.headers.get('x-workbase-version'))
    compared = true
    if (line) tell(line)
    return answer
  }
}

/** Returns a message if the minor versions differ; patch versions are compatible. */
function versionLine(theirs: string | null): string | undefined {
  const ours = packageVersion()
  const minor = /^\d{1,6}\.\d{1,6}(?=\.\d{1,6}(?:[-+][\w.+-]{1,40})?$)/
  const [known, met] = [minor.exec(ours)?.[0], theirs === null ? undefined : minor.exec(theirs)?.[0]]
  return met === undefined || met === known ? undefined : `  this is wb ${ours}, but the runtime is ${theirs}`
}
