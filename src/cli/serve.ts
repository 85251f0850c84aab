import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { systemClock, timestamp } from '../base/clock.ts'
import { isLoopback } from '../base/loopback.ts'
import { WbError } from '../contract/errors.ts'
import { UsageError } from './faults.ts'
import {
  anonymousPass,
  type Listening,
  type LocalConfig,
  lockDataDir,
  openLocal,
  openPort,
  type Runtime,
  readConfig,
  type Voice,
} from './local.ts'
import { portHolder } from './port-holder.ts'
import type { Profile } from './profile.ts'

/** Requests in flight are given this long to finish. */
const drainMs = 10_000

export interface ServeFlags {
  host?: string
  port?: number
  https?: { cert: string; key: string }
  allowOpenAccess: boolean
}

/** A runtime that answers on a port. */
export interface Serving {
  readonly url: string
  /** No other machine can connect. */
  readonly loopback: boolean
  readonly config: LocalConfig
  readonly runtime: Runtime
  /** Refuse new requests, finish those in flight, and let go of everything. */
  stop(): Promise<void>
}

/**
 * Serve a data directory.
 *
 * @throws UsageError        a configuration file lies here that nobody named; an open runtime on an open network
 * @throws WbError conflict  another server has the data directory, or another process the port
 */
export async function serve(
  profile: Profile,
  flags: ServeFlags,
  voice: (config: LocalConfig) => Voice,
): Promise<Serving> {
  const config = await readConfig(profile, flags)
  refuseStranger(config)
  const { host, port } = { ...config.config.runtime, ...given(flags) }
  await refuseOpenBind(host, config, flags.allowOpenAccess)
  const certificate = flags.https && readCertificate(flags.https)
  const taken = await lockDataDir(profile.dataDir)
  if (!('lock' in taken)) throw alreadyServed(profile, taken.heldBy)
  const { lock } = taken
  const undo: (() => unknown)[] = [() => lock.release()]
  try {
    const loopback = isLoopback(host)
    const runtime = await openLocal(profile, config, {
      server: true,
      loopback,
      voice: voice(config),
    })
    undo.unshift(() => runtime.close())
    const listening = await openPort(runtime, { host, port, https: flags.https }).catch(error =>
      refuseAddress(error, host, port),
    )
    lock.announce({
      url: listening.url,
      pid: process.pid,
      startedAt: timestamp(systemClock),
      certificate,
    })
    return {
      url: listening.url,
      loopback,
      config,
      runtime,
      stop: () => stop(runtime, listening, lock.release),
    }
  } catch (error) {
    for (const step of undo) await step()
    throw error
  }
}

function given({ host, port }: ServeFlags): { host?: string; port?: number } {
  return { ...(host !== undefined && { host }), ...(port !== undefined && { port }) }
}

async function stop(runtime: Runtime, listening: Listening, release: () => void): Promise<void> {
  await listening.close(drainMs)
  const late = new Promise<void>(resolve => systemClock.after(drainMs, resolve))
  await Promise.race([runtime.close(), late])
  release()
}

/** @see design/security 6 */
function refuseStranger({ found }: LocalConfig): void {
  if (found.untrusted)
    throw new UsageError(
      `${found.untrusted} lies here, and a file of a folder is not read unless it is named`,
      [`wb serve --config ${found.untrusted}`],
    )
}

/** @see design/security 2 */
async function refuseOpenBind(host: string, config: LocalConfig, allowed: boolean): Promise<void> {
  if (isLoopback(host) || allowed || config.config.auth.acknowledgeOpenAccess === true) return
  if (await anonymousPass(config))
    throw new UsageError(
      `on ${host} other machines could read and change everything, as callers need no credential`,
      [
        'wb serve    listens on this machine alone',
        `wb serve --host ${host} --allow-open-access    lets everyone in`,
      ],
    )
}

function alreadyServed({ dataDir }: Profile, holder: { pid: number; url: string } | undefined): WbError {
  const who = holder ? `process ${holder.pid} at ${holder.url}` : 'another process, which is still starting'
  const next = holder
    ? [`wb kb list    talks to it`, `kill ${holder.pid}    ends it`]
    : ['try again in a moment']
  return new WbError('conflict', `${dataDir} is served already, by ${who}`, { next })
}

/** @throws UsageError a file cannot be read, holds something else, or the key belongs to another certificate */
function readCertificate({ cert, key }: { cert: string; key: string }): string {
  const certificate = readPem('--https-cert', cert, text => new X509Certificate(text))
  const secret = readPem('--https-key', key, text => createPrivateKey(text))
  if (!certificate.parsed.checkPrivateKey(secret.parsed))
    throw new UsageError(`--https-key: ${key} is not the key of ${cert}`)
  return certificate.text
}

function readPem<T>(flag: string, path: string, parse: (text: string) => T): { text: string; parsed: T } {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${error.code})` : ''
    throw new UsageError(`${flag}: ${path} cannot be read${code}`)
  }
  try {
    return { text, parsed: parse(text) }
  } catch {
    const wanted = flag === '--https-key' ? 'private key without a passphrase' : 'certificate'
    throw new UsageError(`${flag}: ${path} holds no ${wanted} in PEM`)
  }
}

function refuseAddress(error: unknown, host: string, port: number): never {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'EADDRINUSE') {
    const holder = portHolder(port)
    const message = `port ${port} is taken${holder ? ` by ${holder}` : ''}`
    throw new WbError('conflict', message, { next: ['wb serve --port 0'] })
  }
  if (code === 'EACCES')
    throw new UsageError(`port ${port} may not be opened by this user`, ['wb serve --port 8787'])
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN' || code === 'EADDRNOTAVAIL')
    throw new UsageError(`${host} is not an address of this machine`, ['wb serve --host 127.0.0.1'])
  throw error
}
