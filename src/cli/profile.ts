import { accessSync, constants, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { isInTheClear } from '../base/loopback.ts'
import { writePrivately } from '../base/private-file.ts'
import { UsageError } from './faults.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** What the global flags say; each wins over the environment. */
export interface ProfileFlags {
  url?: string
  workspace?: string
  dataDir?: string
  config?: string
  insecureHttp?: boolean
  asOperator?: boolean
}

/** Where this person's runtime is, and who they are there. */
export interface Profile {
  /** Origin of a runtime that was named; undefined means the one of the data directory. */
  readonly url: string | undefined
  /** Sent as a bearer token, unless it was meant for another runtime than the one in use. */
  readonly apiKey: string | undefined
  /** The person acts as who owns the data directory: in this process, whatever serves it. */
  readonly asOperator: boolean
  /** Id or name of a workspace, from `--workspace` or `WB_WORKSPACE`. */
  readonly workspace: string | undefined
  readonly dataDir: string
  /** Configuration file that was named, and how; none leaves the search to the runtime. */
  readonly config: { readonly flag?: string; readonly variable?: string }
  /** Folder of this person's settings. */
  readonly settingsDir: string
  readonly colour: boolean
}

const directoryName = 'workbase'

/**
 * The profile in force, from flags, then the environment, then the platform's folders. Nothing else of the command
 * line reads the environment.
 *
 * @throws UsageError when an address is not one, a key is none or would travel in the clear, or an operator is elsewhere
 */
export function readProfile(flags: ProfileFlags, environment: Environment = process.env): Profile {
  const set = nonEmpty(environment)
  const url = namedUrl(flags, set)
  if (flags.asOperator && url) throw operatorElsewhere(flags.url ? '--url' : 'WB_URL', url)
  const apiKey = keyFor(url, flags, set)
  if (apiKey && url && !flags.insecureHttp) refuseClearText('WB_API_KEY', url)
  return {
    url,
    apiKey,
    asOperator: flags.asOperator ?? false,
    workspace: flags.workspace ?? set.WB_WORKSPACE,
    dataDir: resolve(flags.dataDir ?? set.WB_DATA_DIR ?? dataFolder(set)),
    config: { flag: flags.config, variable: set.WB_CONFIG },
    settingsDir: settingsFolder(set),
    colour: set.NO_COLOR === undefined && set.TERM !== 'dumb',
  }
}

/** True where nobody is there to answer. */
export function isCi(environment: Environment = process.env): boolean {
  const { CI } = nonEmpty(environment)
  return CI !== undefined && CI !== 'false'
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

/** `--url`, else `WB_URL` unless `--data-dir` names a runtime more closely. */
function namedUrl(flags: ProfileFlags, set: Environment): string | undefined {
  if (flags.url) return origin(flags.url, '--url')
  return set.WB_URL && !flags.dataDir ? origin(set.WB_URL, 'WB_URL') : undefined
}

function origin(address: string, name: string): string {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (!url || !/^https?:$/.test(url.protocol))
    throw new UsageError(`${name} is "${address}", which is not an http(s) address`, [
      `${name === '--url' ? '--url ' : 'WB_URL='}http://127.0.0.1:8787`,
    ])
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
  const meant = set.WB_URL && origin(set.WB_URL, 'WB_URL')
  const elsewhere = meant && meant !== url && (flags.url !== undefined || flags.dataDir !== undefined)
  return elsewhere || set.WB_API_KEY === undefined ? undefined : headerToken(set.WB_API_KEY)
}

/**
 * What a header can carry. What is wrong with it is not shown, as it may be most of a secret.
 *
 * @throws UsageError  it holds blanks, line breaks or other characters that no token has
 */
function headerToken(key: string): string {
  const token = key.trim()
  if (/^[\x21-\x7e]+$/.test(token)) return token
  throw new UsageError('WB_API_KEY holds a character that no key has', [
    'keys are letters, digits and _: wb_live_…',
  ])
}

/** @see design/security 8 */
function operatorElsewhere(name: string, url: string): UsageError {
  return new UsageError(`--as-operator works on a data directory in this process, and ${name} names ${url}`, [
    'nobody is the operator over HTTP; there, WB_API_KEY says who you are',
    name === 'WB_URL' ? '--data-dir DIR    names a data directory instead' : `leave --url out`,
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

/** What is stored of each profile; there is one, named `default`. */
interface Stored {
  profiles: { default: { workspaces: Record<string, string> } }
}

function storedPath(profile: Profile): string {
  return join(profile.settingsDir, 'profiles.json')
}

function stored(profile: Profile): Stored {
  try {
    const { profiles } = JSON.parse(readFileSync(storedPath(profile), 'utf8')) as Partial<Stored>
    return { profiles: { default: { workspaces: { ...profiles?.default?.workspaces } } } }
  } catch {
    return { profiles: { default: { workspaces: {} } } }
  }
}

/** What is remembered belongs to one runtime: its address, or its data directory. */
export function runtimeKey(profile: Profile): string {
  return profile.url ?? profile.dataDir
}

/** Id of the workspace that `wb workspaces use` chose for the runtime of this profile. */
export function defaultWorkspace(profile: Profile): string | undefined {
  return stored(profile).profiles.default.workspaces[runtimeKey(profile)]
}

/** Remember a workspace for the runtime of this profile; `undefined` forgets it. */
export function useWorkspace(profile: Profile, workspaceId: string | undefined): void {
  const content = stored(profile)
  const { workspaces } = content.profiles.default
  if (workspaceId === undefined) delete workspaces[runtimeKey(profile)]
  else workspaces[runtimeKey(profile)] = workspaceId
  writePrivately(storedPath(profile), `${JSON.stringify(content, null, 2)}\n`)
}
