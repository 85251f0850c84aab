import { realpathSync } from 'node:fs'
import { posix, resolve } from 'node:path'
import { hostOfProviderKey } from '../contract/providers.ts'
import type { Config, Release } from './schema.ts'
import { normalizeRef } from './secret-ref.ts'

/** Which references records may use, and where the secrets behind them may be sent. @see docs/configuration.md */
export interface ReleasePolicy {
  /** What the operator released. */
  readonly allow: readonly Release[]
  /** References of the configuration itself: never released to a record. */
  readonly reserved: readonly string[]
  /** Absolute; its folder of a workspace's id holds files that are released to that workspace. */
  readonly secretsDir: string
  /** Nobody signs in, and nobody else can connect: any `env:*_API_KEY` goes to the host of a known provider. */
  readonly openLoopback: boolean
}

/** @param loopback  no other machine can connect: a loopback bind, or no port at all */
export function releasePolicy(config: Config, dataDir: string, loopback: boolean): ReleasePolicy {
  return {
    allow: config.runtime.secretRefs.allow,
    reserved: ownRefs(config),
    secretsDir: resolve(dataDir, 'secrets'),
    openLoopback: loopback && config.auth.mode === 'disabled',
  }
}

/** A provider's usual key may serve a tool server too: as it goes to its provider's host alone, it stays released. */
function ownRefs({ auth, controlPlane, chat, mcp }: Config): string[] {
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
 * Whether the configuration, or what holds without it, lets the secret behind a record's reference go to a host.
 *
 * @param host  the one that is really dialled, with its port unless that is the scheme's own
 * @see docs/security.md#rule-1
 */
export function released(ref: string, host: string, workspaceId: string, policy: ReleasePolicy): boolean {
  const normal = releasable(ref, policy)
  if (normal === undefined) return false
  return (
    hostOfProviderKey.get(normal) === host ||
    isOfWorkspace(normal, workspaceId, policy.secretsDir) ||
    (policy.openLoopback &&
      /^env:\w+_API_KEY$/.test(normal) &&
      [...hostOfProviderKey.values()].includes(host)) ||
    policy.allow.some(entry => covers(entry, normal, host, workspaceId))
  )
}

/**
 * A reference in the form that is compared.
 *
 * @returns undefined for one that no record may use, whoever releases it
 */
export function releasable(ref: string, { reserved }: Pick<ReleasePolicy, 'reserved'>): string | undefined {
  const normal = normalizeRef(ref)
  return normal === undefined || isReserved(normal, reserved) ? undefined : normal
}

/** Whether it leads to what one of the configuration's own leads to, by whatever name. */
function isReserved(ref: string, reserved: readonly string[]): boolean {
  const names = namesOf(ref)
  return reserved.some(own => namesOf(normalizeRef(own) ?? own).some(name => names.includes(name)))
}

/**
 * A reference as it is written, and the file that its links lead to.
 *
 * Case is ignored, as some platforms ignore it in paths and in names of variables.
 */
function namesOf(ref: string): string[] {
  const names = [ref]
  if (ref.startsWith('file:')) {
    try {
      names.push(`file:${realpathSync(ref.slice('file:'.length))}`)
    } catch {
      // A file that is not there holds no secret.
    }
  }
  return names.map(name => name.toLowerCase())
}

function isOfWorkspace(ref: string, workspaceId: string, secretsDir: string): boolean {
  if (!/^[\w-]+$/.test(workspaceId) || !isBelow(ref, `file:${posix.join(secretsDir, workspaceId)}`))
    return false
  return staysBelow(ref.slice('file:'.length), secretsDir, workspaceId)
}

/** Returns false for a path whose links lead out of the folder of the workspace, also if the folder is a link itself. */
function staysBelow(path: string, secretsDir: string, workspaceId: string): boolean {
  try {
    return isBelow(realpathSync(path), posix.join(realpathSync(secretsDir), workspaceId))
  } catch {
    // The file does not exist, which is reported when the secret is read.
    return true
  }
}

function isBelow(ref: string, folder: string): boolean {
  return ref.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
}

function covers(entry: Release, ref: string, host: string, workspaceId: string): boolean {
  const named = entry.ref === undefined ? begins(ref, entry.prefix ?? '') : normalizeRef(entry.ref) === ref
  return (
    named &&
    (entry.hosts?.some(allowed => isHost(allowed.toLowerCase(), host)) ?? true) &&
    (entry.workspaces?.includes(workspaceId) ?? true)
  )
}

/** A file prefix ends at a path segment: `file:/run/a` does not cover `file:/run/ab`. */
function begins(ref: string, prefix: string): boolean {
  if (prefix === '') return false
  if (!prefix.startsWith('file:')) return ref.startsWith(prefix)
  const normal = normalizeRef(prefix)
  return normal !== undefined && (ref === normal || isBelow(ref, normal))
}

/** An entry without a port covers every port; `*.example.com` covers the names below it. */
function isHost(allowed: string, host: string): boolean {
  const bare = host.replace(/:\d+$/, '')
  if (allowed.startsWith('*.')) return bare.endsWith(allowed.slice(1))
  return allowed === host || allowed === bare
}
