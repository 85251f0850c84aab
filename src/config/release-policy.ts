import { realpathSync } from 'node:fs'
import { posix, resolve } from 'node:path'
import { hostOfProviderKey } from '../contract/providers.ts'
import type { Config, Release } from './schema.ts'
import { normalizeRef } from './secret-ref.ts'

/**
 * Rules for the secrets that records (services and MCP servers) may use, and the hosts to which they may be sent.
 *
 * @see docs/configuration.md
 */
export interface ReleasePolicy {
  /** Releases that the configuration declares. */
  readonly allow: readonly Release[]
  /** References that the configuration itself uses. Records may never use them. */
  readonly reserved: readonly string[]
  /** Absolute path. The files in a subfolder that is named after a workspace ID are released to that workspace. */
  readonly secretsDir: string
  /**
   * True if callers are not authenticated and only this machine can connect. Each `env:*_API_KEY` may then be sent to
   * the host of each known provider.
   */
  readonly isSingleUser: boolean
}

/**
 * Returns the release policy of a configuration.
 *
 * @param isLocalOnly  true if no other machine can connect, because the runtime listens on a loopback address or
 *   does not listen
 */
export function createReleasePolicy(config: Config, dataDir: string, isLocalOnly: boolean): ReleasePolicy {
  return {
    allow: config.runtime.secretRefs.allow,
    reserved: refsOfConfig(config),
    secretsDir: resolve(dataDir, 'secrets'),
    isSingleUser: isLocalOnly && config.auth.mode === 'disabled',
  }
}

/**
 * Returns the references that the configuration itself uses. For tools, omits the default keys of providers, because
 * records can send such a key only to the host of its provider.
 */
function refsOfConfig({ auth, controlPlane, chat, mcp }: Config): string[] {
  const client = auth.oidc?.client
  const identity = [auth.bootstrapTokenRef, client?.clientSecretRef, client?.sessionSecretRef].flat()
  const store = [
    controlPlane.driver === 'astra' ? controlPlane.tokenRef : undefined,
    controlPlane.driver === 'postgres' ? controlPlane.urlRef : undefined,
  ]
  const tools = [
    chat.tools.webSearch.apiKeyRef,
    ...mcp.stdioServers.flatMap(server => Object.values(server.secretEnv)),
  ]
  return [...identity, ...store, ...tools.filter(ref => !hostOfProviderKey.has(ref ?? ''))].filter(
    ref => ref != null,
  )
}

/**
 * Returns true if the configuration or a default allows a record to send a secret to a host.
 *
 * @param host  host that receives the request, with its port unless that is the default port of the scheme
 * @see docs/security.md#rule-1
 */
export function isReleased(ref: string, host: string, workspaceId: string, policy: ReleasePolicy): boolean {
  const normal = normalizeReleasable(ref, policy)
  if (normal === undefined) return false
  return (
    hostOfProviderKey.get(normal) === host ||
    isWorkspaceSecret(normal, workspaceId, policy.secretsDir) ||
    (policy.isSingleUser &&
      /^env:\w+_API_KEY$/.test(normal) &&
      [...hostOfProviderKey.values()].includes(host)) ||
    policy.allow.some(entry => coversRelease(entry, normal, host, workspaceId))
  )
}

/** Returns a reference in normalized form; undefined if records may not use it, even if it is released. */
export function normalizeReleasable(
  ref: string,
  { reserved }: Pick<ReleasePolicy, 'reserved'>,
): string | undefined {
  const normal = normalizeRef(ref)
  return normal === undefined || isReserved(normal, reserved) ? undefined : normal
}

/** Returns true if a reference points to the same secret as a reserved reference, even by another name. */
function isReserved(ref: string, reserved: readonly string[]): boolean {
  const names = namesOfRef(ref)
  return reserved.some(reservedRef =>
    namesOfRef(normalizeRef(reservedRef) ?? reservedRef).some(name => names.includes(name)),
  )
}

/**
 * Returns the names of a reference: the reference itself, and for a file also its path with symbolic links
 * resolved. The names are in lowercase, because some platforms ignore case in paths and variable names.
 */
function namesOfRef(ref: string): string[] {
  const names = [ref]
  if (ref.startsWith('file:')) {
    try {
      names.push(`file:${realpathSync(ref.slice('file:'.length))}`)
    } catch {
      // A file that does not exist contains no secret.
    }
  }
  return names.map(name => name.toLowerCase())
}

function isWorkspaceSecret(ref: string, workspaceId: string, secretsDir: string): boolean {
  if (!/^[\w-]+$/.test(workspaceId) || !isRefBelow(ref, `file:${posix.join(secretsDir, workspaceId)}`))
    return false
  return staysInWorkspaceFolder(ref.slice('file:'.length), secretsDir, workspaceId)
}

/** Returns false if symbolic links lead out of the folder of the workspace, or if this folder is a symbolic link. */
function staysInWorkspaceFolder(path: string, secretsDir: string, workspaceId: string): boolean {
  try {
    return isRefBelow(realpathSync(path), posix.join(realpathSync(secretsDir), workspaceId))
  } catch {
    // The file is missing, which is reported when the secret is read.
    return true
  }
}

function isRefBelow(ref: string, folder: string): boolean {
  return ref.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
}

function coversRelease(entry: Release, ref: string, host: string, workspaceId: string): boolean {
  const coversRef =
    entry.ref === undefined ? hasRefPrefix(ref, entry.prefix ?? '') : normalizeRef(entry.ref) === ref
  return (
    coversRef &&
    (entry.hosts?.some(allowed => coversHost(allowed.toLowerCase(), host)) ?? true) &&
    (entry.workspaces?.includes(workspaceId) ?? true)
  )
}

/**
 * Returns true if a reference starts with a prefix. A prefix of a file path consists of whole segments:
 * `file:/run/a` is not a prefix of `file:/run/ab`.
 */
function hasRefPrefix(ref: string, prefix: string): boolean {
  if (prefix === '') return false
  if (!prefix.startsWith('file:')) return ref.startsWith(prefix)
  const normal = normalizeRef(prefix)
  return normal !== undefined && (ref === normal || isRefBelow(ref, normal))
}

/**
 * Returns true if an allowed host covers a host. An allowed host without a port covers every port. `*.example.com`
 * covers the subdomains of `example.com`.
 */
function coversHost(allowed: string, host: string): boolean {
  const hostWithoutPort = host.replace(/:\d+$/, '')
  if (allowed.startsWith('*.')) return hostWithoutPort.endsWith(allowed.slice(1))
  return allowed === host || allowed === hostWithoutPort
}
