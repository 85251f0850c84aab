import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { timestamp } from '../../base/clock.ts'
import { hostFacts as thisHost } from '../../base/host-facts.ts'
import { isLoopback } from '../../base/loopback.ts'
import { shellWord } from '../../base/shell-word.ts'
import { WbError } from '../../contract/errors.ts'
import { findPortHolder } from '../connection/port-holder.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import {
  anonymousPass,
  type LocalConfig,
  lockDataDir,
  openPort,
  openServed,
  readConfig,
  secretProblems,
  type Voice,
} from '../local.ts'
import { resolveTypedPath } from '../resolve-typed-path.ts'
import type { Profile } from '../settings/profile.ts'
import { trustCreatedDataDir } from '../trust/created-data-dir.ts'
import { requireStillTrusted } from '../trust/folder-settings.ts'
import { untrustedFileMessage } from '../trust/trust-lines.ts'
import { keepServing } from './keep-serving.ts'
import { type RestartReporter, Serving } from './serving.ts'

export interface ServeFlags {
  host?: string
  port?: number
  https?: { cert: string; key: string }
  allowOpenAccess: boolean
}

/** Startup and shutdown messages of a server, and the target of its log. */
export interface ServeEvents extends RestartReporter {
  voice(config: LocalConfig): Voice
}

/**
 * Serves a data directory; in rescue mode if its control plane cannot be opened.
 *
 * @throws UsageError                 when an untrusted configuration file is found, or the server would be
 * open to the network without authentication
 * @throws WbError conflict           when another server uses the data directory, or another process the port
 * @throws control_plane_unavailable  when the data directory is not writable
 */
export async function serve(
  profile: Profile,
  io: Io,
  flags: ServeFlags,
  reporter: ServeEvents,
): Promise<Serving> {
  const config = await readConfig(profile, io, flags)
  requireTrustedConfig(config)
  const { host, port } = { ...config.config.runtime, ...definedFlags(flags) }
  await requireClosedBind(host, config, flags.allowOpenAccess)
  const certificate = flags.https && readCertificate(flags.https, io.cwd)
  const trustDataDir = trustCreatedDataDir(profile)
  const locked = await lockDataDir(profile.dataDir)
  if (!('lock' in locked)) throw alreadyServedError(profile, locked.heldBy)
  const { lock } = locked
  const cleanups: (() => unknown)[] = [() => lock.release()]
  let serving: Serving | undefined
  try {
    const loopback = isLoopback(host)
    const open = (config: LocalConfig, isAgain: boolean) =>
      openServed(profile, config, {
        loopback,
        voice: reporter.voice(config),
        isAgain,
        restart: () => serving?.restart(),
      })
    const runtime = await open(config, false)
    cleanups.unshift(() => runtime.close())
    await trustDataDir()
    const listening = await openPort(runtime, { host, port, https: flags.https }).catch(error =>
      throwListenError(error, { host, port, named: configFlag(profile) }),
    )
    // Otherwise the process would stay alive after an error.
    cleanups.unshift(() => listening.close(0))
    const endOnException = keepServing(io.signals, () => (serving?.runtime ?? runtime).app.log)
    cleanups.unshift(endOnException)
    serving = new Serving({
      config,
      runtime,
      listening,
      loopback,
      reporter,
      read: () => rereadConfig(profile, io, flags, host),
      open: config => open(config, true),
      release() {
        endOnException()
        lock.release()
      },
    })
    lock.announce({
      url: listening.url,
      pid: thisHost.pid,
      startedAt: timestamp(io.clock),
      certificate,
    })
    return serving
  } catch (error) {
    for (const step of cleanups) await step()
    throw error
  }
}

/**
 * Reads the configuration again for a restart on the same address.
 *
 * @throws UsageError, validation_error  when the server could not start with it
 */
async function rereadConfig(profile: Profile, io: Io, flags: ServeFlags, host: string): Promise<LocalConfig> {
  await requireStillTrusted(profile)
  const config = await readConfig(profile, io, flags)
  requireTrustedConfig(config)
  await requireClosedBind(host, config, flags.allowOpenAccess)
  const [problem] = await secretProblems(config)
  if (problem) throw new WbError('validation_error', `${problem.key}: ${problem.message}`)
  return config
}

function definedFlags({ host, port }: ServeFlags): { host?: string; port?: number } {
  return { ...(host !== undefined && { host }), ...(port !== undefined && { port }) }
}

/** @see docs/security.md#rule-6 */
function requireTrustedConfig({ found }: LocalConfig): void {
  if (found.untrusted)
    throw new UsageError(untrustedFileMessage(found.untrusted), [
      'wb trust    trusts the files of this folder, for all commands',
      `wb serve --config ${found.untrusted}`,
    ])
}

/** @see docs/security.md#rule-2 */
async function requireClosedBind(host: string, config: LocalConfig, allowed: boolean): Promise<void> {
  if (isLoopback(host) || allowed || config.config.auth.acknowledgeOpenAccess === true) return
  if (await anonymousPass(config))
    throw new UsageError(`on ${host}, other machines could read and change everything without a credential`, [
      'wb serve    accepts connections from this machine only',
      `wb serve --host ${host} --allow-open-access    accepts everyone`,
    ])
}

function alreadyServedError({ dataDir }: Profile, holder: { pid: number; url: string } | undefined): WbError {
  const who = holder ? `process ${holder.pid} at ${holder.url}` : 'another process, which is still starting'
  const next = holder
    ? [`wb kb list    uses it`, `kill ${holder.pid}    stops it`]
    : ['try again in a moment']
  return new WbError('conflict', `${dataDir} is already served by ${who}`, { next })
}

/**
 * @throws UsageError  when a file cannot be read or has other content, or the key does not match the
 * certificate
 */
function readCertificate({ cert, key }: { cert: string; key: string }, cwd: string): string {
  const certificate = readPem('--https-cert', cert, cwd, text => new X509Certificate(text))
  const secret = readPem('--https-key', key, cwd, text => createPrivateKey(text))
  if (!certificate.parsed.checkPrivateKey(secret.parsed))
    throw new UsageError(`--https-key: ${key} is not the key of ${cert}`)
  return certificate.text
}

function readPem<T>(
  flag: string,
  path: string,
  cwd: string,
  parse: (text: string) => T,
): { text: string; parsed: T } {
  let text: string
  try {
    text = readFileSync(resolveTypedPath(cwd, path), 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${error.code})` : ''
    throw new UsageError(`${flag}: ${path} cannot be read${code}`)
  }
  try {
    return { text, parsed: parse(text) }
  } catch {
    const wanted = flag === '--https-key' ? 'private key without a passphrase' : 'certificate'
    throw new UsageError(`${flag}: ${path} contains no ${wanted} in PEM format`)
  }
}

/** Returns the flag that selects the same configuration. */
function configFlag({ config: { flag } }: Profile): string {
  return flag === undefined ? '' : ` --config ${shellWord(flag)}`
}

function throwListenError(
  error: unknown,
  { host, port, named }: { host: string; port: number; named: string },
): never {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'EADDRINUSE') {
    const holder = findPortHolder(port)
    const message = `port ${port} is in use${holder ? ` by ${holder}` : ''}`
    throw new WbError('conflict', message, { next: [`wb serve --port 0${named}`] })
  }
  if (code === 'EACCES')
    throw new UsageError(`you do not have permission to listen on port ${port}`, [
      `wb serve --port 8787${named}`,
    ])
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN' || code === 'EADDRNOTAVAIL')
    throw new UsageError(`"${host}" is not an address of this machine`, [`wb serve --host 127.0.0.1${named}`])
  throw error
}
