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
  acceptsAnonymous,
  type LocalConfig,
  type LogSettings,
  lockDataDir,
  openServed,
  readConfig,
  secretProblems,
  serveRuntime,
} from '../local.ts'
import { resolveTypedPath } from '../resolve-typed-path.ts'
import type { Profile } from '../settings/profile.ts'
import { trustCreatedDataDir } from '../trust/created-data-dir.ts'
import { requireStillTrusted } from '../trust/folder-settings.ts'
import { untrustedFileMessage } from '../trust/trust-lines.ts'
import { keepServing } from './keep-serving.ts'
import { RestartableServer, type RestartReporter } from './restartable-server.ts'

/** Values of the flags of `wb serve`. */
export interface ServeFlags {
  host?: string
  port?: number
  https?: { cert: string; key: string }
  allowOpenAccess: boolean
}

/** Callbacks of a server, and the settings of its log. */
export interface ServeEvents extends RestartReporter {
  logSettings(config: LocalConfig): LogSettings
}

/**
 * Starts a server for a data directory. The server is in rescue mode if the control plane cannot be opened.
 *
 * @throws UsageError                         when there is an untrusted configuration file, or the server
 *   would accept requests from the network without authentication
 * @throws WbError conflict                   when another server uses the data directory, or another process the port
 * @throws WbError control_plane_unavailable  when the data directory is not writable
 */
export async function serve(
  profile: Profile,
  io: Io,
  flags: ServeFlags,
  reporter: ServeEvents,
): Promise<RestartableServer> {
  const config = await readConfig(profile, io, flags)
  requireTrustedConfig(config)
  const { host, port } = { ...config.config.runtime, ...addressFlags(flags) }
  await requireAuthenticationOnNetwork(host, config, flags.allowOpenAccess)
  const certificate = flags.https && readCertificate(flags.https, io.cwd)
  const trustDataDir = trustCreatedDataDir(profile)
  const lockResult = await lockDataDir(profile.dataDir)
  if (!('lock' in lockResult)) throw alreadyServedError(profile, lockResult.heldBy)
  const { lock } = lockResult
  const cleanups: (() => unknown)[] = [() => lock.release()]
  let server: RestartableServer | undefined
  try {
    const loopback = isLoopback(host)
    const openRuntime = (config: LocalConfig, isRestart: boolean) =>
      openServed(profile, config, {
        loopback,
        logSettings: reporter.logSettings(config),
        isRestart,
        restart: () => server?.restart(),
      })
    const runtime = await openRuntime(config, false)
    cleanups.unshift(() => runtime.close())
    await trustDataDir()
    const listener = await serveRuntime(runtime, { host, port, https: flags.https }).catch(error =>
      throwListenError(error, { host, port, configFlag: configFlagOf(profile) }),
    )
    // An open port would keep the process alive after an error.
    cleanups.unshift(() => listener.close(0))
    const stopKeepingAlive = keepServing(io.signals, () => (server?.runtime ?? runtime).app.log)
    cleanups.unshift(stopKeepingAlive)
    server = new RestartableServer({
      config,
      runtime,
      listener,
      loopback,
      reporter,
      readConfig: () => rereadConfig(profile, io, flags, host),
      openRuntime: config => openRuntime(config, true),
      release() {
        stopKeepingAlive()
        lock.release()
      },
    })
    lock.announce({
      url: listener.url,
      pid: thisHost.pid,
      startedAt: timestamp(io.clock),
      certificate,
    })
    return server
  } catch (error) {
    for (const cleanUp of cleanups) await cleanUp()
    throw error
  }
}

/**
 * Reads the configuration again for a restart on the same address.
 *
 * @throws UsageError, WbError validation_error  when the server could not start with it
 */
async function rereadConfig(profile: Profile, io: Io, flags: ServeFlags, host: string): Promise<LocalConfig> {
  await requireStillTrusted(profile)
  const config = await readConfig(profile, io, flags)
  requireTrustedConfig(config)
  await requireAuthenticationOnNetwork(host, config, flags.allowOpenAccess)
  const [problem] = await secretProblems(config)
  if (problem) throw new WbError('validation_error', `${problem.key}: ${problem.message}`)
  return config
}

function addressFlags({ host, port }: ServeFlags): { host?: string; port?: number } {
  return { ...(host !== undefined && { host }), ...(port !== undefined && { port }) }
}

/** @throws UsageError  when there is an untrusted configuration file. @see docs/security.md#rule-6 */
function requireTrustedConfig({ file }: LocalConfig): void {
  if (file.untrusted)
    throw new UsageError(untrustedFileMessage(file.untrusted), [
      'wb trust    trusts the files of this folder, for all commands',
      `wb serve --config ${file.untrusted}`,
    ])
}

/**
 * @throws UsageError  when other machines could connect without a credential, and the user has not allowed that
 * @see docs/security.md#rule-2
 */
async function requireAuthenticationOnNetwork(
  host: string,
  config: LocalConfig,
  isAllowed: boolean,
): Promise<void> {
  if (isLoopback(host) || isAllowed || config.config.auth.acknowledgeOpenAccess === true) return
  if (await acceptsAnonymous(config))
    throw new UsageError(`on ${host}, other machines could read and change everything without a credential`, [
      'wb serve    accepts connections from this machine only',
      `wb serve --host ${host} --allow-open-access    accepts everyone`,
    ])
}

function alreadyServedError({ dataDir }: Profile, holder: { pid: number; url: string } | undefined): WbError {
  const server = holder
    ? `process ${holder.pid} at ${holder.url}`
    : 'another process, which is still starting'
  const next = holder
    ? [`wb kb list    uses that server`, `kill ${holder.pid}    stops it`]
    : ['try again in a moment']
  return new WbError('conflict', `${dataDir} is already served by ${server}`, { next })
}

/**
 * Reads the certificate, and checks that the key belongs to it.
 *
 * @returns the certificate in PEM format
 * @throws UsageError  when a file cannot be read or parsed, or the key does not belong to the certificate
 */
function readCertificate({ cert, key }: { cert: string; key: string }, cwd: string): string {
  const certificate = readPem('--https-cert', cert, cwd, text => new X509Certificate(text))
  const privateKey = readPem('--https-key', key, cwd, text => createPrivateKey(text))
  if (!certificate.parsed.checkPrivateKey(privateKey.parsed))
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
    const expected = flag === '--https-key' ? 'private key without a passphrase' : 'certificate'
    throw new UsageError(`${flag}: ${path} contains no ${expected} in PEM format`)
  }
}

/** Returns the `--config` flag of this command, with a leading space. Empty if the command has no such flag. */
function configFlagOf({ config: { flag } }: Profile): string {
  return flag === undefined ? '' : ` --config ${shellWord(flag)}`
}

function throwListenError(
  error: unknown,
  { host, port, configFlag }: { host: string; port: number; configFlag: string },
): never {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'EADDRINUSE') {
    const holder = findPortHolder(port)
    const message = `port ${port} is in use${holder ? ` by ${holder}` : ''}`
    throw new WbError('conflict', message, { next: [`wb serve --port 0${configFlag}`] })
  }
  if (code === 'EACCES')
    throw new UsageError(`you do not have permission to listen on port ${port}`, [
      `wb serve --port 8787${configFlag}`,
    ])
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN' || code === 'EADDRNOTAVAIL')
    throw new UsageError(`"${host}" is not an address of this machine`, [
      `wb serve --host 127.0.0.1${configFlag}`,
    ])
  throw error
}
