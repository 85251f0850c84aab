import { join, resolve } from 'node:path'
import { hostFacts } from '../../base/host-facts.ts'
import { shellWord } from '../../base/shell-word.ts'
import type { KeychainDriver } from '../../keychain/keychain.ts'
import { type Environment, homeFolder, nonEmpty, sessionVariables } from '../environment.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { type AddressSource, parseRuntimeAddress, requireEncryption } from './address.ts'
import { readProfiles, requireProfile, requireProfileName } from './profiles.ts'

/** Values of `--credential`: an API key, or a stored login. */
export type CredentialChoice = 'key' | 'login'

/** Values of the global flags, which take precedence over the environment. */
export interface ProfileFlags {
  profile?: string
  url?: string
  /** Uses the data directory of this machine, and ignores the addresses in the environment and the profile. */
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
  /** Absolute path. */
  readonly dataDir?: string
  /** Absolute path. */
  readonly config?: string
}

/** Resolved settings: runtime, credentials, workspace and folders. */
export interface Profile {
  readonly name: string
  /** Source of the profile name. */
  readonly nameSource: '--profile' | 'WB_PROFILE' | '.wb.yaml' | 'wb profiles use'
  /** Address of the runtime; undefined for the runtime of the data directory. */
  readonly url: string | undefined
  /** Source of the address. */
  readonly urlSource: AddressSource | undefined
  /** True with `--local`: the runtime of the data directory is used. */
  readonly local: boolean
  /** Value of `WB_API_KEY`; undefined if it belongs to another runtime. */
  readonly apiKey: string | undefined
  /** Value of `--credential`. */
  readonly credential: CredentialChoice | undefined
  /** True with `--insecure-http`, which allows unencrypted connections. */
  readonly insecureHttp: boolean
  /** True with `--as-operator`: requests run in this process, as the owner of the data directory. */
  readonly asOperator: boolean
  /** ID or name of a workspace, from `--workspace`, `WB_WORKSPACE` or `.wb.yaml`. */
  readonly workspace: string | undefined
  /** Source of the workspace; undefined if it comes from the flag or is not set. */
  readonly workspaceSource: 'WB_WORKSPACE' | '.wb.yaml' | undefined
  /** ID or name of the default knowledge base, from `.wb.yaml`. */
  readonly knowledgeBase: string | undefined
  readonly dataDir: string
  /** Source of the data directory. `working directory` means the `.workbase/` of a trusted folder. */
  readonly dataDirSource: '--data-dir' | 'WB_DATA_DIR' | 'working directory' | 'platform'
  /** Path of the configuration file, by source. If none is set, the runtime searches for the file. */
  readonly config: { readonly flag?: string; readonly variable?: string; readonly trusted?: string }
  /** Working directory of the command, absolute. */
  readonly cwd: string
  /** Folder of the user's settings. */
  readonly settingsDir: string
  /** Environment variables that libraries need to find the keychain. */
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
 * @param flags.mayBeNew  true to accept a profile that does not exist
 * @throws UsageError  the address or key is invalid, the key would be sent unencrypted, `--as-operator` or
 *   `--local` is combined with another runtime, or the profile does not exist
 */
export function readProfile(
  flags: ProfileFlags & { mayBeNew?: boolean },
  { env, cwd }: Pick<Io, 'env' | 'cwd'>,
  folder: FolderSettings = {},
): Profile {
  if (flags.local && flags.url) throw localConflict('--url')
  if (flags.local && flags.profile) throw localConflict('--profile')
  const variables = nonEmpty(env)
  const settingsDir = resolve(cwd, settingsFolder(variables))
  const { name, nameSource, stored } = resolveProfileName(flags, variables, settingsDir, folder)
  const { url, urlSource } = resolveUrl(flags, variables, stored.url)
  if (flags.asOperator && url)
    throw operatorConflict({ url, urlSource, ...resolveDataDir(flags, variables, folder, cwd) })
  const apiKey = apiKeyFor(url, flags, variables)
  const insecureHttp = flags.insecureHttp ?? false
  if (apiKey && url && !insecureHttp) requireEncryption('WB_API_KEY', { url, urlSource })
  return {
    name,
    nameSource,
    url,
    urlSource,
    local: flags.local ?? false,
    apiKey,
    credential: flags.credential,
    insecureHttp,
    asOperator: flags.asOperator ?? false,
    ...resolveWorkspaceSetting(flags, variables, folder),
    ...resolveDataDir(flags, variables, folder, cwd),
    config: { flag: flags.config, variable: variables.WB_CONFIG, trusted: folder.config },
    cwd,
    settingsDir,
    sessionVariables: sessionVariables(env),
    keychain: parseKeychainDriver(variables.WB_KEYCHAIN) ?? stored.keychain,
    hasColors: variables.NO_COLOR === undefined && variables.TERM !== 'dumb',
  }
}

/** Returns the name of the profile, its source, and its stored settings. @throws UsageError  it does not exist */
function resolveProfileName(
  flags: ProfileFlags & { mayBeNew?: boolean },
  variables: Environment,
  settingsDir: string,
  folder: FolderSettings,
) {
  const storedProfiles = readProfiles(settingsDir)
  const [nameSource, name]: [Profile['nameSource'], string] = flags.profile
    ? ['--profile', flags.profile]
    : variables.WB_PROFILE
      ? ['WB_PROFILE', variables.WB_PROFILE]
      : folder.profile
        ? ['.wb.yaml', folder.profile]
        : ['wb profiles use', storedProfiles.current]
  requireProfileName(name)
  const stored = flags.mayBeNew
    ? (storedProfiles.profiles[name] ?? { workspaces: {} })
    : requireProfile(storedProfiles, name)
  return { name, nameSource, stored } as const
}

/**
 * Returns the workspace and the knowledge base. The knowledge base in `.wb.yaml` is not used if a flag or a variable
 * selects the workspace.
 */
function resolveWorkspaceSetting(
  flags: ProfileFlags,
  variables: Environment,
  folder: FolderSettings,
): Pick<Profile, 'workspace' | 'workspaceSource' | 'knowledgeBase'> {
  const { knowledgeBase } = folder
  if (flags.workspace)
    return { workspace: flags.workspace, workspaceSource: undefined, knowledgeBase: undefined }
  if (variables.WB_WORKSPACE)
    return { workspace: variables.WB_WORKSPACE, workspaceSource: 'WB_WORKSPACE', knowledgeBase: undefined }
  const workspaceSource = folder.workspace === undefined ? undefined : '.wb.yaml'
  return { workspace: folder.workspace, workspaceSource, knowledgeBase }
}

function resolveDataDir(
  flags: ProfileFlags,
  variables: Environment,
  folder: FolderSettings,
  cwd: string,
): Pick<Profile, 'dataDir' | 'dataDirSource'> {
  if (flags.dataDir) return { dataDir: resolve(cwd, flags.dataDir), dataDirSource: '--data-dir' }
  if (variables.WB_DATA_DIR)
    return { dataDir: resolve(cwd, variables.WB_DATA_DIR), dataDirSource: 'WB_DATA_DIR' }
  if (folder.dataDir) return { dataDir: folder.dataDir, dataDirSource: 'working directory' }
  return { dataDir: resolve(cwd, dataFolder(variables)), dataDirSource: 'platform' }
}

/** @throws UsageError  there is no keychain with this name */
function parseKeychainDriver(name: string | undefined): KeychainDriver | undefined {
  if (name === undefined || name === 'keyring' || name === 'keytar' || name === 'file') return name
  throw new UsageError(`WB_KEYCHAIN is "${name}"; it must be keyring, keytar or file`)
}

/**
 * Returns the address from `--url`, `WB_URL` or the profile, in this order. Returns no address if `--local` or
 * `--data-dir` is used without `--url`. `WB_DATA_DIR` takes precedence over the profile.
 */
function resolveUrl(
  flags: ProfileFlags,
  variables: Environment,
  profileUrl: string | undefined,
): Pick<Profile, 'url' | 'urlSource'> {
  if (flags.url) return { url: parseRuntimeAddress(flags.url, '--url'), urlSource: '--url' }
  if (flags.local || flags.dataDir) return { url: undefined, urlSource: undefined }
  if (variables.WB_URL) return { url: parseRuntimeAddress(variables.WB_URL, 'WB_URL'), urlSource: 'WB_URL' }
  return profileUrl && !variables.WB_DATA_DIR
    ? { url: profileUrl, urlSource: 'profile' }
    : { url: undefined, urlSource: undefined }
}

/**
 * Returns `WB_API_KEY`. Returns undefined if the key belongs to the runtime at `WB_URL`, but a flag selects another
 * address or a data directory.
 *
 * @see docs/security.md#rule-6
 */
function apiKeyFor(url: string | undefined, flags: ProfileFlags, variables: Environment): string | undefined {
  const keyRuntime = variables.WB_URL && parseRuntimeAddress(variables.WB_URL, 'WB_URL')
  const isSelectedByFlag = flags.url !== undefined || flags.dataDir !== undefined || flags.local
  const isForOtherRuntime = keyRuntime && keyRuntime !== url && isSelectedByFlag
  return isForOtherRuntime || variables.WB_API_KEY === undefined
    ? undefined
    : parseHeaderToken(variables.WB_API_KEY)
}

/**
 * Returns a token without surrounding white space, after checking that it can be sent in a header.
 *
 * @param source  source of the token, for messages
 * @throws UsageError  it is empty or contains invalid characters; the message does not contain the token
 */
export function parseHeaderToken(text: string, source = 'WB_API_KEY'): string {
  const token = text.trim()
  if (/^[\x21-\x7e]+$/.test(token)) return token
  throw new UsageError(`${source} ${token === '' ? 'is empty' : 'contains an invalid character'}`, [
    'a key consists of letters, digits and _: wb_live_…',
  ])
}

/** Returns the error for `--local` together with a flag or argument that selects another runtime. */
export function localConflict(other: '--url' | '--profile' | 'URL'): UsageError {
  return new UsageError(`--local cannot be combined with ${other}`, [
    `--local uses the data directory of this machine; remove --local or ${other}`,
  ])
}

/** @see docs/security.md#rule-8 */
function operatorConflict({
  url,
  urlSource,
  dataDir,
}: Pick<Profile, 'url' | 'urlSource' | 'dataDir'>): UsageError {
  const name = urlSource === 'profile' ? 'the profile' : urlSource
  return new UsageError(
    `--as-operator works on a data directory of this machine, but ${name} selects ${url}`,
    [
      'to authenticate over HTTP, sign in or set WB_API_KEY',
      urlSource === '--url'
        ? `remove --url`
        : `--data-dir ${shellWord(dataDir)}    selects the data directory of this machine`,
    ],
  )
}

function dataFolder(variables: Environment): string {
  if (hostFacts.platform === 'darwin')
    return join(homeFolder(variables), 'Library', 'Application Support', directoryName)
  if (hostFacts.platform === 'win32')
    return join(variables.LOCALAPPDATA ?? join(homeFolder(variables), 'AppData', 'Local'), directoryName)
  return join(variables.XDG_DATA_HOME ?? join(homeFolder(variables), '.local', 'share'), directoryName)
}

function settingsFolder(variables: Environment): string {
  if (hostFacts.platform === 'darwin')
    return join(homeFolder(variables), 'Library', 'Application Support', directoryName)
  if (hostFacts.platform === 'win32')
    return join(variables.APPDATA ?? join(homeFolder(variables), 'AppData', 'Roaming'), directoryName)
  return join(variables.XDG_CONFIG_HOME ?? join(homeFolder(variables), '.config'), directoryName)
}

/** Returns the key of a runtime in stored settings: its address, or else its data directory. */
export function runtimeKey({ url, dataDir }: Pick<Profile, 'url' | 'dataDir'>): string {
  return url ?? dataDir
}

/** Returns the ID of the default workspace, as set by `wb workspaces use`. */
export function defaultWorkspace(profile: Profile): string | undefined {
  return readProfiles(profile.settingsDir).profiles[profile.name]?.workspaces[runtimeKey(profile)]
}
