import { accessSync, constants } from 'node:fs'
import { homedir } from 'node:os'
import { basename, delimiter, join, resolve } from 'node:path'
import { isInTheClear, isLoopback } from '../base/loopback.ts'
import type { KeychainDriver } from '../keychain/keychain.ts'
import { UsageError } from './faults.ts'
import { changeProfiles, readProfiles, requireProfile, requireProfileName } from './profiles.ts'
import { shellWord } from './shell-word.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Credentials that a person may choose between. */
export type CredentialChoice = 'key' | 'login'

/** What the global flags say; each wins over the environment. */
export interface ProfileFlags {
  profile?: string
  url?: string
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
  readonly urlFrom: '--url' | 'WB_URL' | 'profile' | undefined
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
  /** Folder of this person's settings. */
  readonly settingsDir: string
  /** Where a login is kept that is made now. */
  readonly keychain: KeychainDriver | undefined
  readonly colour: boolean
}

const directoryName = 'workbase'

/**
 * The profile in force, from flags, then the environment, then the files of the working directory, then what is stored,
 * then the platform's folders. Nothing else of the command line reads the environment.
 *
 * @throws UsageError when an address is not one, a key is none or would travel in the clear, an operator is elsewhere,
 *                    or no such profile is stored
 */
export function readProfile(
  flags: ProfileFlags & { mayBeNew?: boolean },
  environment: Environment = process.env,
  folder: FolderSays = {},
): Profile {
  const set = nonEmpty(environment)
  const settingsDir = settingsFolder(set)
  const { name, nameFrom, stored } = namedProfile(flags, set, settingsDir, folder)
  const { url, urlFrom } = namedUrl(flags, set, stored.url)
  if (flags.asOperator && url) throw operatorElsewhere({ url, urlFrom, ...namedDataDir(flags, set, folder) })
  const apiKey = keyFor(url, flags, set)
  const insecureHttp = flags.insecureHttp ?? false
  if (apiKey && url && !insecureHttp) refuseClearText('WB_API_KEY', url)
  return {
    name,
    nameFrom,
    url,
    urlFrom,
    apiKey,
    credential: flags.credential,
    insecureHttp,
    asOperator: flags.asOperator ?? false,
    ...namedPlace(flags, set, folder),
    ...namedDataDir(flags, set, folder),
    config: { flag: flags.config, variable: set.WB_CONFIG, trusted: folder.config },
    settingsDir,
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
): Pick<Profile, 'dataDir' | 'dataDirFrom'> {
  if (flags.dataDir) return { dataDir: resolve(flags.dataDir), dataDirFrom: '--data-dir' }
  if (set.WB_DATA_DIR) return { dataDir: resolve(set.WB_DATA_DIR), dataDirFrom: 'WB_DATA_DIR' }
  if (folder.dataDir) return { dataDir: folder.dataDir, dataDirFrom: 'working directory' }
  return { dataDir: resolve(dataFolder(set)), dataDirFrom: 'platform' }
}

/** @throws UsageError  no such keychain */
function keychainNamed(name: string | undefined): KeychainDriver | undefined {
  if (name === undefined || name === 'keyring' || name === 'keytar' || name === 'file') return name
  throw new UsageError(`WB_KEYCHAIN is "${name}"; it may be keyring, keytar or file`)
}

/** True where nobody is there to answer. */
export function isCi(environment: Environment = process.env): boolean {
  const { CI } = nonEmpty(environment)
  return CI !== undefined && CI !== 'false'
}

/** What the environment says of connections to other machines. */
export interface ConnectionSettings {
  readonly proxies: { readonly http?: string; readonly https?: string; readonly except?: string }
  /** Files of authorities to trust, by the variable that names each. */
  readonly authorities: { readonly SSL_CERT_FILE?: string; readonly NODE_EXTRA_CA_CERTS?: string }
}

/**
 * Proxies and trust. Of a variable in lower and in upper case the lower one counts, as elsewhere.
 *
 * @throws UsageError  the address of a proxy is none; it is not shown, as it may hold a password
 */
export function connectionSettings(environment: Environment = process.env): ConnectionSettings {
  const set = nonEmpty(environment)
  const { SSL_CERT_FILE, NODE_EXTRA_CA_CERTS } = set
  const proxies = {
    http: proxyAddress(set.http_proxy ?? set.HTTP_PROXY, 'HTTP_PROXY'),
    https: proxyAddress(set.https_proxy ?? set.HTTPS_PROXY, 'HTTPS_PROXY'),
    except: set.no_proxy ?? set.NO_PROXY,
  }
  return { proxies, authorities: { SSL_CERT_FILE, NODE_EXTRA_CA_CERTS } }
}

function proxyAddress(value: string | undefined, name: string): string | undefined {
  if (value === undefined) return undefined
  const address = value.includes('://') ? value : `http://${value}`
  if (URL.canParse(address) && /^(?:https?|socks5?):$/.test(new URL(address).protocol)) return address
  throw new UsageError(`${name} is not the address of a proxy`, [`${name}=http://proxy.example:3128`])
}

/** False where a terminal was said to take no UTF-8; one of which nothing is said takes it. @see POSIX 8.2 */
export function takesUtf8(environment: Environment = process.env): boolean {
  const { LC_ALL, LC_CTYPE, LANG } = nonEmpty(environment)
  const locale = LC_ALL ?? LC_CTYPE ?? LANG
  return locale === undefined || /utf-?8/i.test(locale)
}

/** Name of the shell that this person works in: `zsh`; undefined where nothing says so. */
export function loginShell(environment: Environment = process.env): string | undefined {
  const { SHELL } = nonEmpty(environment)
  return SHELL && basename(SHELL)
}

/** Programs that put their input into the clipboard, and the variable without which they reach none. */
const clipboards: readonly { command: readonly [string, ...string[]]; display?: string }[] = [
  { command: ['wl-copy'], display: 'WAYLAND_DISPLAY' },
  { command: ['xclip', '-selection', 'clipboard'], display: 'DISPLAY' },
  { command: ['xsel', '--clipboard', '--input'], display: 'DISPLAY' },
  { command: ['pbcopy'] },
  { command: ['clip.exe'] },
]

/** The command line that puts its input into the clipboard of this person; undefined where there is none. */
export function clipboardCommand(environment: Environment = process.env): readonly string[] | undefined {
  const set = nonEmpty(environment)
  const folders = (set.PATH ?? '').split(delimiter).filter(Boolean)
  return clipboards.find(
    ({ command: [program], display }) =>
      (display === undefined || set[display]) && folders.some(folder => isExecutable(join(folder, program))),
  )?.command
}

/** True where a browser could be opened in front of this person. */
export function hasBrowser(environment: Environment = process.env): boolean {
  const set = nonEmpty(environment)
  if (isCi(environment) || set.SSH_CONNECTION || set.SSH_TTY) return false
  return process.platform !== 'linux' || Boolean(set.DISPLAY || set.WAYLAND_DISPLAY || set.WSL_DISTRO_NAME)
}

/** By what a library finds the keychain of this person's session. */
const sessionVariable =
  /^(?:HOME|USER|LOGNAME|PATH|LANG|DISPLAY|WAYLAND_DISPLAY|DBUS_SESSION_BUS_ADDRESS|XDG_\w+|USERPROFILE|APPDATA|LOCALAPPDATA|SystemRoot|TEMP|TMP)$/

/** The variables of this person's session, and no other: no credential is among them. */
export function sessionVariables(environment: Environment = process.env): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => sessionVariable.test(name)))
}

/** Programs that are started from here get no key of the person's. */
export function hideCredential(): void {
  delete process.env.WB_API_KEY
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** An empty variable counts as unset. */
function nonEmpty(environment: Environment): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([, value]) => value))
}

/** `--url`, else `WB_URL`, else the profile's, unless a data directory is named more closely. */
function namedUrl(
  flags: ProfileFlags,
  set: Environment,
  stored: string | undefined,
): Pick<Profile, 'url' | 'urlFrom'> {
  if (flags.url) return { url: runtimeAddress(flags.url, '--url'), urlFrom: '--url' }
  if (flags.dataDir) return { url: undefined, urlFrom: undefined }
  if (set.WB_URL) return { url: runtimeAddress(set.WB_URL, 'WB_URL'), urlFrom: 'WB_URL' }
  return stored && !set.WB_DATA_DIR
    ? { url: stored, urlFrom: 'profile' }
    : { url: undefined, urlFrom: undefined }
}

/** What was probably meant by an address without a scheme. */
function likely(address: string): string {
  const [, host] = /^([\w-]+(?:\.[\w-]+)*)(?::\d+)?$/.exec(address) ?? []
  if (host !== undefined && isLoopback(host)) return `http://${address}`
  return host?.includes('.') ? `https://${address}` : 'http://127.0.0.1:8787'
}

/**
 * The address of a runtime, without slashes at its end.
 *
 * @param name   what gives it
 * @param typed  how it is given
 * @throws UsageError  it is none, or holds a credential
 */
export function runtimeAddress(
  address: string,
  name: string,
  typed = (likely: string) => (name.startsWith('--') ? `${name} ${likely}` : `${name}=${likely}`),
): string {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (!url || !/^https?:$/.test(url.protocol))
    throw new UsageError(`${name} is "${address}", which is not an http(s) address`, [typed(likely(address))])
  if (url.search || url.hash)
    throw new UsageError(`${name} has more than a runtime's address has: no "?" and no "#"`)
  if (url.username || url.password)
    throw new UsageError(`${name} holds a user name or password; a key goes into WB_API_KEY`)
  return url.href.replace(/\/+$/, '')
}

/**
 * `WB_API_KEY` belongs to the runtime that `WB_URL` names; without `WB_URL` to whichever is in use.
 *
 * @see design/security 6
 */
function keyFor(url: string | undefined, flags: ProfileFlags, set: Environment): string | undefined {
  const meant = set.WB_URL && runtimeAddress(set.WB_URL, 'WB_URL')
  const elsewhere = meant && meant !== url && (flags.url !== undefined || flags.dataDir !== undefined)
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

/** @see design/security 8 */
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

/**
 * @param what  a credential, in words
 * @throws UsageError  it would leave the machine unencrypted
 * @see design/security 15
 */
export function refuseClearText(what: string, url: string): void {
  const target = new URL(url)
  if (!isInTheClear(target)) return
  throw new UsageError(`${what} would travel unencrypted to ${target.origin}`, [
    `use https://, or add --insecure-http if you trust every network on the way`,
  ])
}

function dataFolder(set: Environment): string {
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Application Support', directoryName)
  if (process.platform === 'win32')
    return join(set.LOCALAPPDATA ?? join(homedir(), 'AppData', 'Local'), directoryName)
  return join(set.XDG_DATA_HOME ?? join(homedir(), '.local', 'share'), directoryName)
}

function settingsFolder(set: Environment): string {
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Application Support', directoryName)
  if (process.platform === 'win32')
    return join(set.APPDATA ?? join(homedir(), 'AppData', 'Roaming'), directoryName)
  return join(set.XDG_CONFIG_HOME ?? join(homedir(), '.config'), directoryName)
}

/** What is remembered belongs to one runtime: its address, or its data directory. */
export function runtimeKey({ url, dataDir }: Pick<Profile, 'url' | 'dataDir'>): string {
  return url ?? dataDir
}

/** Id of the workspace that `wb workspaces use` chose for the runtime of this profile. */
export function defaultWorkspace(profile: Profile): string | undefined {
  return readProfiles(profile.settingsDir).profiles[profile.name]?.workspaces[runtimeKey(profile)]
}

/** Remember a workspace for the runtime of this profile; `undefined` forgets it. */
export function useWorkspace(profile: Profile, workspaceId: string | undefined): void {
  changeProfiles(profile.settingsDir, ({ profiles }) => {
    const stored = profiles[profile.name] ?? { workspaces: {} }
    profiles[profile.name] = stored
    if (workspaceId === undefined) delete stored.workspaces[runtimeKey(profile)]
    else stored.workspaces[runtimeKey(profile)] = workspaceId
  })
}
