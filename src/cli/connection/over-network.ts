import { readFileSync } from 'node:fs'
import { hostFacts } from '../../base/host-facts.ts'
import { isLoopback } from '../../base/loopback.ts'
import { packageVersion } from '../../base/package.ts'
import type { Fetch } from '../../client/fetch.ts'
import type { NetworkOptions } from '../../client/node/network-options.ts'
import { type Network, network } from '../../client/node/transport.ts'
import { type ConnectionSettings, connectionSettings } from '../environment.ts'
import { UsageError } from '../faults.ts'
import type { Io } from '../io.ts'
import { typedPath } from '../typed-path.ts'
import { wireLine, wireLogged } from './wire-log.ts'

/** What is heard on the way to a runtime. */
export interface Overheard {
  /** Takes a block a request; undefined where nobody asked for them. */
  wire?: (block: string) => void
  /** Takes a line, once, where the runtime is of another version. */
  otherVersion?: (line: string) => void
}

/** Where a runtime answers, and the certificate (PEM) of one on this machine. */
interface Place {
  readonly url: string
  readonly certificate?: string
}

/**
 * The way to a runtime that answers on the network.
 *
 * @throws UsageError  the environment names a proxy that is none, or a file of certificates that cannot be read
 */
export function overNetwork(
  { url, certificate }: Place,
  io: Pick<Io, 'env' | 'cwd' | 'clock'>,
  heard: Overheard,
): Network {
  const { wire, otherVersion } = heard
  const { fetch, close } = network({
    ...reaching(new URL(url), io),
    certificate,
    userAgent: `workbase-cli/${packageVersion()} (${hostFacts.platform}; node v${hostFacts.nodeVersion})`,
    onRetry: wire && (retry => wire(wireLine(retry))),
  })
  const logged = wire ? wireLogged(fetch, wire, io.clock) : fetch
  return { fetch: otherVersion ? comparing(logged, otherVersion) : logged, close }
}

/** What a runtime on this machine is reached by is nobody else's matter: no proxy is asked. */
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

/** Node itself trusts `NODE_EXTRA_CA_CERTS`, but only where nothing else is named. */
function certificatesIn(
  { SSL_CERT_FILE, NODE_EXTRA_CA_CERTS }: ConnectionSettings['authorities'],
  cwd: string,
): string[] {
  if (!SSL_CERT_FILE) return []
  const files = Object.entries({ SSL_CERT_FILE, NODE_EXTRA_CA_CERTS })
  return files.flatMap(([name, path]) => (path ? [contentOf(name, typedPath(cwd, path))] : []))
}

function contentOf(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new UsageError(`${name} names ${path}, which cannot be read (${code})`, [
      `unset ${name}    trusts the authorities that Node knows`,
    ])
  }
}

/** Compare the version of the first answer that says one. */
function comparing(fetch: Fetch, tell: (line: string) => void): Fetch {
  let compared = false
  return async (url, outgoing) => {
    const answer = await fetch(url, outgoing)
    const line = compared ? undefined : versionLine(answer.headers.get('x-workbase-version'))
    compared = true
    if (line) tell(line)
    return answer
  }
}

/** Patches change no interface. */
function versionLine(theirs: string | null): string | undefined {
  const ours = packageVersion()
  const minor = /^\d{1,6}\.\d{1,6}(?=\.\d{1,6}(?:[-+][\w.+-]{1,40})?$)/
  const [known, met] = [minor.exec(ours)?.[0], theirs === null ? undefined : minor.exec(theirs)?.[0]]
  return met === undefined || met === known ? undefined : `  this wb is ${ours}, the runtime ${theirs}`
}
