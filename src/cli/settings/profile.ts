import { join, resolve } from 'node:path'
import { hostFacts } from '../../base/host-facts.ts'
import { shellWord } from '../../base/shell-word.ts'
import type { KeychainDriver } from '../../keychain/keychain.ts'
import { type Environment, homeFolder, nonEmpty, sessionVariables } from '../environment.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { type AddressSource, parseRuntimeAddress, requireEncryption } from './address.ts'
import { readProfiles, requireProfile, requireProfileName } from './profiles.ts'

/** Kinds of credentials for `--credential`. */
export type CredentialChoice = 'key' | 'login'

/** Values of the global flags, which take precedence over the environment. */
export interface ProfileFlags {
  profile?: string
  url?: string
  /** Use the runtime of this machine, and ignore the addresses of the environment and the profile. */
  local?: boolean
  workspace?: string
  dataDir?: string
  config?: string
  credential?: CredentialChoice
  insecureHttp?: boolean
  asOperator?: boolean
}

/** Settings from trusted files of the working directory. Flags and environment take precedence. */
export interface FolderSettings {
  readonly workspace?: string
  readonly knowledgeBase?: string
  readonly profile?: string
  /** Absolute path, like `config`. */
  readonly dataDir?: string
  readonly config?: string
}

/** Resolved settings: runtime, credentials, workspace and folders. */
export interface Profile {
  readonly name: string
  /** Source of the profile name. */
  readonly nameFrom: '--profile' | 'WB_PROFILE' | '.wb.yaml' | 'wb profiles use'
  /** Address of the runtime; undefined for that of the data directory. */
  readonly url: string | undefined
  /** Source of the value. */
  readonly urlFrom: AddressSource | undefined
  /** True with `--local`, which ignores all addresses. */
  readonly local: boolean
  /** Value of `WB_API_KEY`; undefined if it was meant for another runtime. */
  readonly apiKey: string | undefined
  /** Value of `--credential`. */
  readonly credential: CredentialChoice | undefined
  /** True with `--insecure-http`, which allows unencrypted connections. */
  readonly insecureHttp: boolean
  /** True with `--as-operator`: requests run in this process, as the owner of the data directory. */
  readonly asOperator: boolean
  /** ID or name of a workspace, from `--workspace`, `WB_WORKSPACE` or `.wb.yaml`. */
  readonly workspace: string | undefined
  /** Source of the workspace; undefined for the flag. */
  readonly workspaceFrom: 'WB_WORKSPACE' | '.wb.yaml' | undefined
  /** ID or name of the default knowledge base, from `.wb.yaml`. */
  readonly knowledgeBase: string | undefined
  readonly dataDir: string
  /** Source of the value. */
  readonly dataDirFrom: '--data-dir' | 'WB_DATA_DIR' | 'working directory' | 'platform'
  /** Configuration file by source. Without one, the runtime searches for it. */
  readonly config: { readonly flag?: string; readonly variable?: string; readonly trusted?: string }
  /** Working directory of the command, absolute. */
  readonly cwd: string
  /** Folder of the user's settings. */
  readonly settingsDir: string
  /** Variables that libraries need to find the keychain. */
  readonly sessionVariables: Environment
  /** Keychain for new logins; undefined for the default. */
  readonly keychain: KeychainDriver | undefined
  readonly hasColors: boolean
}

const directoryName = 'workbase'

/**
 * Resolves the settings from flags, then the environment, the working directory, the stored profile and the
 * defaults of the platform.
 *
 * @throws UsageError  an address or key is invalid or would be sent unencrypted, `--as-operator` or `--local` is combined with another runtime, or the profile does not exist
 */
export function readProfile(
  flags: ProfileFlags & { mayBeNew?: boolean },
  { env, cwd }: Pick<Io, 'env' | 'cwd'>,
  folder: FolderSettings = {},
): Profile {
  if (flags.local && flags.url) throw localConflict('--url')
  if (flags.local && flags.profile) throw localConflict('--profile')
  const set = nonEmpty(env)
  const settingsDir = resolve(cwd, settingsFolder(set))
  const { name, nameFrom, stored } = resolveProfileName(flags, set, settingsDir, folder)
  const { url, urlFrom } = resolveUrl(flags, set, stored.url)
  if (flags.asOperator && url)
    throw operatorConflict({ url, urlFrom, ...resolveDataDir(flags, set, folder, cwd) })
  const apiKey = apiKeyFor(url, flags, set)
  const insecureHttp = flags.insecureHttp ?? false
  if (apiKey && url && !insecureHttp) requireEncryption('WB_API_KEY', { url, urlFrom })
  return {
    name,
    nameFrom,
    url,
    urlFrom,
    local: flags.local ?? false,
    apiKey,
    credential: flags.credential,
    insecureHttp,
    asOperator: flags.asOperator ?? false,
    ...resolveWorkspaceSetting(flags, set, folder),
    ...resolveDataDir(flags, set, folder, cwd),
    config: { flag: flags.config, variable: set.WB_CONFIG, trusted: folder.config },
    cwd,
    settingsDir,
    sessionVariables: sessionVariables(env),
    keychain: parseKeychainDriver(set.WB_KEYCHAIN) ?? stored.keychain,
    hasColors: set.NO_COLOR === undefined && set.TERM !== 'dumb',
  }
}

/** @throws UsageError  there is no such profile */
function resolveProfileName(
  flags: ProfileFlags & { mayBeNew?: boolean },
  set: Environment,
  settingsDir: string,
  folder: FolderSettings,
) {
  const all = readProfiles(settingsDir)
  const [nameFrom, name]: [Profile['nameFrom'], string] = flags.profile
    ? ['--profile', flags.profile]
    : set.WB_PROFILE
      ? ['WB_PROFILE', set.WB_PROFILE]
      : folder.profile
        ? ['.wb.yaml', folder.profile]
        : ['wb profiles use', all.current]
  requireProfileName(name)
  const stored = flags.mayBeNew ? (all.profiles[name] ?? { workspaces: {} }) : requireProfile(all, name)
  return { name, nameFrom, stored } as const
}

/**
 * Returns the workspace and knowledge base. The knowledge base of `.wb.yaml` is only used with its
 * workspace.
 */
function resolveWorkspaceSetting(
  flags: ProfileFlags,
  set: Environment,
  folder: FolderSettings,
): Pick<Profile, 'workspace' | 'workspaceFrom' | 'knowledgeBase'> {
  const { knowledgeBase } = folder
  if (flags.workspace)
    return { workspace: flags.workspace, workspaceFrom: undefined, knowledgeBase: undefined }
  if (set.WB_WORKSPACE)
    return { workspace: set.WB_WORKSPACE, workspaceFrom: 'WB_WORKSPACE', knowledgeBase: undefined }
  const workspaceFrom = folder.workspace === undefined ? undefined : '.wb.yaml'
  return { workspace: folder.workspace, workspaceFrom, knowledgeBase }
}

function resolveDataDir(
  flags: ProfileFlags,
  set: Environment,
  folder: FolderSettings,
  cwd: string,
): Pick<Profile, 'dataDir' | 'dataDirFrom'> {
  if (flags.dataDir) return { dataDir: resolve(cwd, flags.dataDir), dataDirFrom: '--data-dir' }
  if (set.WB_DATA_DIR) return { dataDir: resolve(cwd, set.WB_DATA_DIR), dataDirFrom: 'WB_DATA_DIR' }
  if (folder.dataDir) return { dataDir: folder.dataDir, dataDirFrom: 'working directory' }
  return { dataDir: resolve(cwd, dataFolder(set)), dataDirFrom: 'platform' }
}

/** @throws UsageError  no such keychain */
function parseKeychainDriver(name: string | undefined): KeychainDriver | undefined {
  if (name === undefined || name === 'keyring' || name === 'keytar' || name === 'file') return name
  throw new UsageError(`WB_KEYCHAIN is "${name}"; it must be keyring, keytar or file`)
}

/**
 * Returns the address of `--url`, `WB_URL` or the profile, in this order; none with `--local` or `--data-
 * dir`.
 */
function resolveUrl(
  flags: ProfileFlags,
  set: Environment,
  stored: string | undefined,
): Pick<Profile, 'url' | 'urlFrom'> {
  if (flags.url) return { url: parseRuntimeAddress(flags.url, '--url'), urlFrom: '--url' }
  if (flags.local || flags.dataDir) return { url: undefined, urlFrom: undefined }
  if (set.WB_URL) return { url: parseRuntimeAddress(set.WB_URL, 'WB_URL'), urlFrom: 'WB_URL' }
  return stored && !set.WB_DATA_DIR
    ? { url: stored, urlFrom: 'profile' }
    : { url: undefined, urlFrom: undefined }
}

/**
 * Returns `WB_API_KEY` if it is meant for this runtime. It belongs to the runtime of `WB_URL` if that is
 * set, else to any.
 *
 * @see docs/security.md#rule-6
 */
function apiKeyFor(url: string | undefined, flags: ProfileFlags, set: Environment): string | undefined {
  const meant = set.WB_URL && parseRuntimeAddress(set.WB_URL, 'WB_URL')
  const isTyped = flags.url !== undefined || flags.dataDir !== undefined || flags.local
  const elsewhere = meant && meant !== url && isTyped
  return elsewhere || set.WB_API_KEY === undefined ? undefined : parseHeaderToken(set.WB_API_KEY)
}

/**
 * Returns a token without surrounding blanks, after checking that a header can carry it. Messages do not
 * contain the token.
 *
 * @throws UsageError  it is empty or contains invalid characters
 */
export function parseHeaderToken(key: string, from = 'WB_API_KEY'): string {
  const token = key.trim()
  if (/^[\x21-\x7e]+$/.test(token)) return token
  throw new UsageError(`${from} ${token === '' ? 'is empty' : 'contains an invalid character'}`, [
    'a key consists of letters, digits and _: wb_live_…',
  ])
}

/** @param named  the flag or argument that names a runtime besides `--local` */
export function localConflict(named: '--url' | '--profile' | 'URL'): UsageError {
  return new UsageError(`--local cannot be combined with ${named}`, [
    `--local uses the data directory of this machine; remove --local or ${named}`,
  ])
}

/** @see docs/security.md#rule-8 */
function operatorConflict({
  url,
  urlFrom: from,
  dataDir,
}: Pick<Profile, 'url' | 'urlFrom' | 'dataDir'>): UsageError {
  const name = from === 'profile' ? 'the profile' : from
  return new UsageError(
    `--as-operator works on a data directory of this machine, but ${name} selects ${url}`,
    [
      'to authenticate over HTTP, sign in or set WB_API_KEY',
      from === '--url'
        ? `leave out --url`
        : `--data-dir ${shellWord(dataDir)}    selects the one of this machine`,
    ],
  )
}

function dataFolder(set: Environment): string {
  if (hostFacts.platform === 'darwin')
    return join(homeFolder(set), 'Library', 'Application Support', directoryName)
  if (hostFacts.platform === 'win32')
    return join(set.LOCALAPPDATA ?? join(homeFolder(set), 'AppData', 'Local'), directoryName)
  return join(set.XDG_DATA_HOME ?? join(homeFolder(set), '.local', 'share'), directoryName)
}

function settingsFolder(set: Environment): string {
  if (hostFacts.platform === 'darwin')
    return join(homeFolder(set), 'Library', 'Application Support', directoryName)
  if (hostFacts.platform === 'win32')
    return join(set.APPDATA ?? join(homeFolder(set), 'AppData', 'Roaming'), directoryName)
  return join(set.XDG_CONFIG_HOME ?? join(homeFolder(set), '.config'), directoryName)
}

/** Returns the key for settings that belong to one runtime: its address or data directory. */
export function runtimeKey({ url, dataDir }: Pick<Profile, 'url' | 'dataDir'>): string {
  return url ?? dataDir
}

/** Returns the ID of the default workspace, as set by `wb workspaces use`. */
export function defaultWorkspace(profile: Profile): string | undefined {
  return readProfiles(profile.settingsDir).profiles[profile.name]?.workspaces[runtimeKey(profile)]
}
