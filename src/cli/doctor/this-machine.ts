import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { hostFacts } from '../../base/host-facts.ts'
import { packageRoot, packageVersion } from '../../base/package.ts'
import { shellWord } from '../../base/shell-word.ts'
import { findPortHolder } from '../connection/port-holder.ts'
import type { Announcement } from '../local.ts'
import type { Profile } from '../settings/profile.ts'
import { formatAgo } from '../terminal/duration.ts'
import { type Finding, failed, ok, skipped, warning } from './check.ts'
import type { ValidatedConfig } from './validate-config.ts'

/** Checks the version of Node.js, and shows it with the version of wb. */
export function checkNode(version = hostFacts.nodeVersion): Finding {
  const { engines } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as {
    engines: { node: string }
  }
  const required = engines.node.replace(/^>=/, '')
  const versions = `${version}, with wb ${packageVersion()}`
  return isAtLeast(version, required)
    ? ok(versions)
    : failed(`${versions}, which needs Node.js ${required} or later`, 'nvm install --lts')
}

/** Compares dotted version numbers. Missing parts count as 0. */
function isAtLeast(version: string, minimum: string): boolean {
  const [actual, required] = [version, minimum].map(text => text.split('.').map(Number))
  for (const [index, number] of required!.entries())
    if (actual![index] !== number) return (actual![index] ?? 0) > number
  return true
}

/** Reports which `wb serve` holds the lock of the data directory. */
export function checkServerLock(server: Announcement | undefined, nowMs: number): Finding {
  return ok(
    server
      ? `held by wb serve at ${server.url}, process ${server.pid}, started ${formatAgo(Date.parse(server.startedAt), nowMs)}`
      : 'no wb serve is running',
  )
}

/** Returns one finding for each error and warning of the configuration, and names its file if there are no errors. */
export function configFindings({ problems, warnings }: ValidatedConfig, path: string | null): Finding[] {
  const file = path ?? 'the defaults'
  const errorFindings = problems.map(({ key, message }) =>
    failed(key ? `${key}: ${message}` : message, 'wb config validate'),
  )
  const warningFindings = warnings.map(text => warning(text, 'wb config show'))
  return errorFindings.length > 0 ? [...errorFindings, ...warningFindings] : [ok(file), ...warningFindings]
}

/** Checks that the port of `wb serve` is free, by connecting to it without sending data. */
export async function checkPort(
  profile: Profile,
  { local }: ValidatedConfig,
  server: Announcement | undefined,
  signal: AbortSignal,
): Promise<Finding> {
  if (profile.url !== undefined) return skipped('the runtime of this profile is not on this machine')
  if (!local) return skipped('the configuration cannot be read')
  const { host, port } = local.config.runtime
  if (server) {
    const listeningPort = new URL(server.url).port
    return ok(
      listeningPort === String(port) ? `${port} is used by wb serve` : `wb serve listens on ${listeningPort}`,
    )
  }
  if (!(await isPortTaken(host, port, signal))) return ok(`${port} is free`)
  const holder = findPortHolder(port)
  return warning(
    `${port} is in use by ${holder ?? 'another program'}`,
    `wb serve --port 0${profile.config.flag === undefined ? '' : ` --config ${shellWord(profile.config.flag)}`}`,
  )
}

function isPortTaken(host: string, port: number, signal: AbortSignal): Promise<boolean> {
  const connectHost = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return new Promise(resolve => {
    const socket = connect({ host: connectHost, port, signal })
    const resolveWith = (isTaken: boolean) => () => {
      socket.destroy()
      resolve(isTaken)
    }
    socket.on('connect', resolveWith(true)).on('error', resolveWith(false))
  })
}
