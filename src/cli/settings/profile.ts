import { join, resolve } from 'node:path'
import { hostFacts } from '../../base/host-facts.ts'
import { shellWord } from '../../base/shell-word.ts'
import type { KeychainDriver } from '../../keychain/keychain.ts'
import { type Environment, homeFolder, nonEmpty, sessionVariables } from '../environment.ts'
import { UsageError } from '../faults.ts'
import type { Io } from '../io.ts'
import { type AddressFrom, refuseClearText, runtimeAddress } from './address.ts'
import { readProfiles, requireProfile, requireProfileName } from './profiles.ts'

/** Credentials that a person may choose between. */
export type CredentialChoice = 'key' | 'login'

/** What the global flags say; each wins over the environment. */
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

/** What the files of the working directory say, where they count; flags and the environment stand over it. */
export interface FolderSays {
  readonly workspace?: string
  readonly knowledgeBase?: string
  readonly profile?: string
  /** Absolute, as the others. */
  readonly dataDir?: string
  readonly config?: string
}

/** Where this person's runtime is, and who they are there. */
export interface Profile {
  readonly name: string
  /** Who chose the profile. */
  readonly nameFrom: '--profile' | 'WB_PROFILE' | '.wb.yaml' | 'wb profiles use'
  /** Address of a runtime that was named; undefined means the one of the data directory. */
  readonly url: string | undefined
  /** Who named it. */
  readonly urlFrom: AddressFrom | undefined
  /** True with `--local`, which ignores all addresses. */
  readonly local: boolean
  /** `WB_API_KEY`: sent as a bearer token, unless it was meant for another runtime than the one in use. */
  readonly apiKey: string | undefined
  /** What `--credential` says. */
  readonly credential: CredentialChoice | undefined
  /** The person takes the risk of an unencrypted way. */
  readonly insecureHttp: boolean
  /** The person acts as who owns the data directory: in this process, whatever serves it. */
  readonly asOperator: boolean
  /** Id or name of a workspace, from `--workspace`, `WB_WORKSPACE` or a file of the working directory. */
  readonly workspace: string | undefined
  /** Set where nobody typed it. */
  readonly workspaceFrom: 'WB_WORKSPACE' | '.wb.yaml' | undefined
  /** Id or name of the knowledge base that is meant where none is named. */
  readonly knowledgeBase: string | undefined
  readonly dataDir: string
  /** Who named it. */
  readonly dataDirFrom: '--data-dir' | 'WB_DATA_DIR' | 'working directory' | 'platform'
  /** Configuration file that was named, or trusted with its folder; none leaves the search to the runtime. */
  readonly config: { readonly flag?: string; readonly variable?: string; readonly trusted?: string }
  /** Working directory of the command, absolute. */
  readonly cwd: string
  /** Folder of this person's settings. */
  readonly settingsDir: string
  /** Variables that locate the keychain of this person's session. */
  readonly sessionVariables: Environment
  /** Where a login is kept that is made now. */
  readonly keychain: KeychainDriver | undefined
  readonly colour: boolean
}

const directoryName = 'workbase'

/**
 * The profile in force, from flags, then the environment, then the files of the working directory, then what is stored,
 * then the platform's folders.
 *
 * @throws UsageError when an address is not one, a key is none or would travel in the clear, an operator is elsewhere,
 *                    `--local` is combined with another runtime, or no such profile is stored
 */
export function readProfile(
  flags: ProfileFlags & { mayBeNew?: boolean },
  { env, cwd }: Pick<Io, 'env' | 'cwd'>,
  folder: FolderSays = {},
): Profile {
  if (flags.local && flags.url) throw localConflict('--url')
  if (flags.local && flags.profile) throw localConflict('--profile')
  const set = nonEmpty(env)
  const settingsDir = resolve(cwd, settingsFolder(set))
  const { name, nameFrom, stored } = namedProfile(flags, set, settingsDir, folder)
  const { url, urlFrom } = namedUrl(flags, set, stored.url)
  if (flags.asOperator && url)
    throw operatorElsewhere({ url, urlFrom, ...namedDataDir(flags, set, folder, cwd) })
  const apiKey = keyFor(url, flags, set)
  const insecureHttp = flags.insecureHttp ?? false
  if (apiKey && url && !insecureHttp) refuseClearText('WB_API_KEY', { url, urlFrom })
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
    ...namedPlace(flags, set, folder),
    ...namedDataDir(flags, set, folder, cwd),
    config: { flag: flags.config, variable: set.WB_CONFIG, trusted: folder.config },
    cwd,
    settingsDir,
    sessionVariables: sessionVariables(env),
    keychain: keychainNamed(set.WB_KEYCHAIN) ?? stored.keychain,
    colour: set.NO_COLOR === undefined && set.TERM !== 'dumb',
  }
}

/** @throws UsageError  there is no such profile */
function namedProfile(
  flags: ProfileFlags & { mayBeNew?: boolean },
  set: Environment,
  settingsDir: string,
  folder: FolderSays,
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

/** The knowledge base of a file is one of the workspace of that file, and of no other that is named. */
function namedPlace(
  flags: ProfileFlags,
  set: Environment,
  folder: FolderSays,
): Pick<Profile, 'workspace' | 'workspaceFrom' | 'knowledgeBase'> {
  const { knowledgeBase } = folder
  if (flags.workspace)
    return { workspace: flags.workspace, workspaceFrom: undefined, knowledgeBase: undefined }
  if (set.WB_WORKSPACE)
    return { workspace: set.WB_WORKSPACE, workspaceFrom: 'WB_WORKSPACE', knowledgeBase: undefined }
  const workspaceFrom = folder.workspace === undefined ? undefined : '.wb.yaml'
  return { workspace: folder.workspace, workspaceFrom, knowledgeBase }
}

function namedDataDir(
  flags: ProfileFlags,
  set: Environment,
  folder: FolderSays,
  cwd: string,
): Pick<Profile, 'dataDir' | 'dataDirFrom'> {
  if (flags.dataDir) return { dataDir: resolve(cwd, flags.dataDir), dataDirFrom: '--data-dir' }
  if (set.WB_DATA_DIR) return { dataDir: resolve(cwd, set.WB_DATA_DIR), dataDirFrom: 'WB_DATA_DIR' }
  if (folder.dataDir) return { dataDir: folder.dataDir, dataDirFrom: 'working directory' }
  return { dataDir: resolve(cwd, dataFolder(set)), dataDirFrom: 'platform' }
}

/** @throws UsageError  no such keychain */
function keychainNamed(name: string | undefined): KeychainDriver | undefined {
  if (name === undefined || name === 'keyring' || name === 'keytar' || name === 'file') return name
  throw new UsageError(`WB_KEYCHAIN is "${name}"; it may be keyring, keytar or file`)
}

/** Returns the address of `--url`, `WB_URL` or the profile, in this order; none with `--local` or `--data-dir`. */
function namedUrl(
  flags: ProfileFlags,
  set: Environment,
  stored: string | undefined,
): Pick<Profile, 'url' | 'urlFrom'> {
  if (flags.url) return { url: runtimeAddress(flags.url, '--url'), urlFrom: '--url' }
  if (flags.local || flags.dataDir) return { url: undefined, urlFrom: undefined }
  if (set.WB_URL) return { url: runtimeAddress(set.WB_URL, 'WB_URL'), urlFrom: 'WB_URL' }
  return stored && !set.WB_DATA_DIR
    ? { url: stored, urlFrom: 'profile' }
    : { url: undefined, urlFrom: undefined }
}

/**
 * `WB_API_KEY` belongs to the runtime that `WB_URL` names; without `WB_URL` to whichever is in use.
 *
 * @see docs/security.md#rule-6
 */
function keyFor(url: string | undefined, flags: ProfileFlags, set: Environment): string | undefined {
  const meant = set.WB_URL && runtimeAddress(set.WB_URL, 'WB_URL')
  const isTyped = flags.url !== undefined || flags.dataDir !== undefined || flags.local
  const elsewhere = meant && meant !== url && isTyped
  return elsewhere || set.WB_API_KEY === undefined ? undefined : headerToken(set.WB_API_KEY)
}

/**
 * What a header can carry. What is wrong with it is not shown, as it may be most of a secret.
 *
 * @throws UsageError  it holds blanks, line breaks or other characters that no token has
 */
export function headerToken(key: string, from = 'WB_API_KEY'): string {
  const token = key.trim()
  if (/^[\x21-\x7e]+$/.test(token)) return token
  throw new UsageError(`${from} holds ${token === '' ? 'nothing' : 'a character that no key has'}`, [
    'keys are letters, digits and _: wb_live_…',
  ])
}

/** @param named  the flag or argument that names a runtime besides `--local` */
export function localConflict(named: '--url' | '--profile' | 'URL'): UsageError {
  return new UsageError(`--local cannot be combined with ${named}`, [
    `--local uses the data directory of this machine; remove --local or ${named}`,
  ])
}

/** @see docs/security.md#rule-8 */
function operatorElsewhere({
  url,
  urlFrom: from,
  dataDir,
}: Pick<Profile, 'url' | 'urlFrom' | 'dataDir'>): UsageError {
  const name = from === 'profile' ? 'the profile' : from
  return new UsageError(`--as-operator works on a data directory in this process, and ${name} names ${url}`, [
    'nobody is the operator over HTTP; there, a login or WB_API_KEY says who you are',
    from === '--url' ? `leave --url out` : `--data-dir ${shellWord(dataDir)}    is the one of this machine`,
  ])
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

/** What is remembered belongs to one runtime: its address, or its data directory. */
export function runtimeKey({ url, dataDir }: Pick<Profile, 'url' | 'dataDir'>): string {
  return url ?? dataDir
}

/** Id of the workspace that `wb workspaces use` chose for the runtime of this profile. */
export function defaultWorkspace(profile: Profile): string | undefined {
  return readProfiles(profile.settingsDir).profiles[profile.name]?.workspaces[runtimeKey(profile)]
}
