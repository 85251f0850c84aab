import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { isLoopback } from '../base/loopback.ts'
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
}

/** Where this person's runtime is, and who they are there. */
export interface Profile {
  /** Origin of a runtime that was named; undefined means the one of the data directory. */
  readonly url: string | undefined
  /** Sent as a bearer token, unless it was meant for another runtime than the one in use. */
  readonly apiKey: string | undefined
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
 * @throws UsageError when an address is not one, or a key would travel in the clear
 */
export function readProfile(flags: ProfileFlags, environment: Environment = process.env): Profile {
  const set = nonEmpty(environment)
  const url = namedUrl(flags, set)
  const apiKey = keyFor(url, flags, set)
  if (apiKey && url && !flags.insecureHttp) refuseClearText('WB_API_KEY', url)
  return {
    url,
    apiKey,
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
  return elsewhere ? undefined : set.WB_API_KEY
}

/**
 * @param what  a credential, in words
 * @throws UsageError  it would leave the machine unencrypted
 * @see design/security 15
 */
export function refuseClearText(what: string, url: string): void {
  const { protocol, hostname, origin } = new URL(url)
  if (protocol === 'https:' || isLoopback(hostname)) return
  throw new UsageError(`${what} would travel unencrypted to ${origin}`, [
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
