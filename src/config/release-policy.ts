import { realpathSync } from 'node:fs'
import { posix, resolve } from 'node:path'
import { hostOfProviderKey } from '../contract/providers.ts'
import type { Config, Release } from './schema.ts'
import { normalizeRef } from './secret-ref.ts'

/**
 * Rules for which secret references records may use, and to which hosts the secrets may be sent.
 *
 * @see docs/configuration.md
 */
export interface ReleasePolicy {
  /** Releases in the configuration. */
  readonly allow: readonly Release[]
  /** References that the configuration itself uses. They are never released to a record. */
  readonly reserved: readonly string[]
  /** Absolute path. Its subfolder with the ID of a workspace contains files released to that workspace. */
  readonly secretsDir: string
  /**
   * True if there is no authentication, and only this machine can connect. Then any `env:*_API_KEY` may be
   * sent to the host of any known provider.
   */
  readonly openLoopback: boolean
}

/** @param loopback  true if no other machine can connect: a loopback address, or no port at all */
export function createReleasePolicy(config: Config, dataDir: string, loopback: boolean): ReleasePolicy {
  return {
    allow: config.runtime.secretRefs.allow,
    reserved: refsOfConfig(config),
    secretsDir: resolve(dataDir, 'secrets'),
    openLoopback: loopback && config.auth.mode === 'disabled',
  }
}

/**
 * Returns the references that the configuration itself uses. The usual key of a provider stays released even
 * if a tool server uses it, because it is sent to its provider's host only.
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
 * Returns true if the secret of a record's reference may be sent to a host, by the configuration or by
 * default.
 *
 * @param host  host that is actually contacted, with its port unless it is the default of the scheme
 * @see docs/security.md#rule-1
 */
export function isReleased(ref: string, host: string, workspaceId: string, policy: ReleasePolicy): boolean {
  const normal = normalizeReleasable(ref, policy)
  if (normal === undefined) return false
  return (
    hostOfProviderKey.get(normal) === host ||
    isWorkspaceSecret(normal, workspaceId, policy.secretsDir) ||
    (policy.openLoopback &&
      /^env:\w+_API_KEY$/.test(normal) &&
      [...hostOfProviderKey.values()].includes(host)) ||
    policy.allow.some(entry => coversRelease(entry, normal, host, workspaceId))
  )
}

/** Returns a reference in normalized form; undefined if no record may use it, even if released. */
export function normalizeReleasable(
  ref: string,
  { reserved }: Pick<ReleasePolicy, 'reserved'>,
): string | undefined {
  const normal = normalizeRef(ref)
  return normal === undefined || isReserved(normal, reserved) ? undefined : normal
}

/** Returns true if a reference resolves to the same secret as a reserved one, even under another name. */
function isReserved(ref: string, reserved: readonly string[]): boolean {
  const names = namesOfRef(ref)
  return reserved.some(own => namesOfRef(normalizeRef(own) ?? own).some(name => names.includes(name)))
}

/**
 * Returns the names of a reference: as written, and for a file also with symbolic links resolved. In lower
 * case, because some platforms ignore case in paths and variable names.
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

/** Returns false if symbolic links lead out of the workspace's folder, or if the folder itself is one. */
function staysInWorkspaceFolder(path: string, secretsDir: string, workspaceId: string): boolean {
  try {
    return isRefBelow(realpathSync(path), posix.join(realpathSync(secretsDir), workspaceId))
  } catch {
    // Reading the secret later reports the missing file.
    return true
  }
}

function isRefBelow(ref: string, folder: string): boolean {
  return ref.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
}

function coversRelease(entry: Release, ref: string, host: string, workspaceId: string): boolean {
  const named =
    entry.ref === undefined ? hasRefPrefix(ref, entry.prefix ?? '') : normalizeRef(entry.ref) === ref
  return (
    named &&
    (entry.hosts?.some(allowed => coversHost(allowed.toLowerCase(), host)) ?? true) &&
    (entry.workspaces?.includes(workspaceId) ?? true)
  )
}

/**
 * Returns true if a reference starts with a prefix. A file prefix ends at a path segment: `file:/run/a` does
 * not cover `file:/run/ab`.
 */
function hasRefPrefix(ref: string, prefix: string): boolean {
  if (prefix === '') return false
  if (!prefix.startsWith('file:')) return ref.startsWith(prefix)
  const normal = normalizeRef(prefix)
  return normal !== undefined && (ref === normal || isRefBelow(ref, normal))
}

/**
 * Returns true if an entry covers a host. An entry without a port covers every port; `*.example.com` covers
 * its subdomains.
 */
function coversHost(allowed: string, host: string): boolean {
  const bare = host.replace(/:\d+$/, '')
  if (allowed.startsWith('*.')) return bare.endsWith(allowed.slice(1))
  return allowed === host || allowed === bare
}
