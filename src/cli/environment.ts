import { accessSync, constants } from 'node:fs'
import { homedir } from 'node:os'
import { basename, delimiter, join } from 'node:path'
import { hostFacts } from '../base/host-facts.ts'
import { UsageError } from './errors.ts'

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Returns true in CI, where no user can answer prompts: `CI` is set and not `false`. */
export function isCi(environment: Environment): boolean {
  const { CI } = nonEmpty(environment)
  return CI !== undefined && CI !== 'false'
}

/** Settings for connections to other machines. */
export interface ConnectionSettings {
  readonly proxies: { readonly http?: string; readonly https?: string; readonly except?: string }
  /** Files with certificate authorities to trust, by environment variable. */
  readonly authorities: { readonly SSL_CERT_FILE?: string; readonly NODE_EXTRA_CA_CERTS?: string }
  /** Maximum time without data, in milliseconds. */
  readonly idleTimeoutMs?: number
}

/**
 * Reads proxies, certificate authorities and the idle timeout. The lower-case variable of a proxy wins over the upper-case
 * one, as in other tools.
 *
 * @throws UsageError  the address of a proxy is invalid (it is not shown, because it may hold a password), or
 *                     `WB_IDLE_TIMEOUT` is not a whole number of seconds
 */
export function connectionSettings(environment: Environment): ConnectionSettings {
  const set = nonEmpty(environment)
  const { SSL_CERT_FILE, NODE_EXTRA_CA_CERTS } = set
  const proxies = {
    http: proxyAddress(set.http_proxy ?? set.HTTP_PROXY, 'HTTP_PROXY'),
    https: proxyAddress(set.https_proxy ?? set.HTTPS_PROXY, 'HTTPS_PROXY'),
    except: set.no_proxy ?? set.NO_PROXY,
  }
  return {
    proxies,
    authorities: { SSL_CERT_FILE, NODE_EXTRA_CA_CERTS },
    idleTimeoutMs: idleTimeoutIn(set.WB_IDLE_TIMEOUT),
  }
}

/** Returns milliseconds; the maximum is one day. */
function idleTimeoutIn(value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  const seconds = /^\d{1,5}$/.test(value) ? Number(value) : 0
  if (seconds >= 1 && seconds <= 86_400) return seconds * 1_000
  throw new UsageError('WB_IDLE_TIMEOUT must be a number of seconds from 1 to 86400', ['WB_IDLE_TIMEOUT=120'])
}

function proxyAddress(value: string | undefined, name: string): string | undefined {
  if (value === undefined) return undefined
  const address = value.includes('://') ? value : `http://${value}`
  if (URL.canParse(address) && /^(?:https?|socks5?):$/.test(new URL(address).protocol)) return address
  throw new UsageError(`${name} is not a valid proxy address`, [`${name}=http://proxy.example:3128`])
}

/** Returns false if the locale excludes UTF-8. Without a locale, returns true. @see POSIX 8.2 */
export function supportsUtf8(environment: Environment): boolean {
  const { LC_ALL, LC_CTYPE, LANG } = nonEmpty(environment)
  const locale = LC_ALL ?? LC_CTYPE ?? LANG
  return locale === undefined || /utf-?8/i.test(locale)
}

/** Returns the line width set by `COLUMNS`, for output that is not a terminal. */
export function columnsSetting(environment: Environment): number | undefined {
  const { COLUMNS = '' } = environment
  return /^[1-9]\d{1,3}$/.test(COLUMNS) ? Number(COLUMNS) : undefined
}

/** Returns the name of the login shell, such as `zsh`; undefined if `SHELL` is not set. */
export function loginShell(environment: Environment): string | undefined {
  const { SHELL } = nonEmpty(environment)
  return SHELL && basename(SHELL)
}

/** Clipboard programs that read from stdin, and the variable that each requires. */
const clipboards: readonly { command: readonly [string, ...string[]]; display?: string }[] = [
  { command: ['wl-copy'], display: 'WAYLAND_DISPLAY' },
  { command: ['xclip', '-selection', 'clipboard'], display: 'DISPLAY' },
  { command: ['xsel', '--clipboard', '--input'], display: 'DISPLAY' },
  { command: ['pbcopy'] },
  { command: ['clip.exe'] },
]

/** Returns the command that copies its stdin to the clipboard, or undefined. */
export function clipboardCommand(environment: Environment): readonly string[] | undefined {
  const set = nonEmpty(environment)
  const folders = pathFolders(environment)
  return clipboards.find(
    ({ command: [program], display }) =>
      (display === undefined || set[display]) && folders.some(folder => isExecutable(join(folder, program))),
  )?.command
}

/** Values of `TERM` for terminals without a clipboard. */
const withoutClipboard = ['dumb', 'linux']

/** Returns how to reach the clipboard of the terminal; undefined if the terminal has none. */
export function terminalClipboard(environment: Environment): 'terminal' | 'tmux' | undefined {
  const { TERM, TMUX } = nonEmpty(environment)
  if (TMUX) return 'tmux'
  return TERM === undefined || withoutClipboard.includes(TERM) ? undefined : 'terminal'
}

/** Returns the folders of `PATH`, in order. */
export function pathFolders(environment: Environment): readonly string[] {
  return (environment.PATH ?? '').split(delimiter).filter(Boolean)
}

/** Returns true if a browser can be opened for the user: not in CI, over SSH, or without a display. */
export function hasBrowser(environment: Environment): boolean {
  const set = nonEmpty(environment)
  if (isCi(environment) || set.SSH_CONNECTION || set.SSH_TTY) return false
  return hostFacts.platform !== 'linux' || Boolean(set.DISPLAY || set.WAYLAND_DISPLAY || set.WSL_DISTRO_NAME)
}

/** Variables that libraries need to find the keychain of the user's session. */
const sessionVariable =
  /^(?:HOME|USER|LOGNAME|PATH|LANG|DISPLAY|WAYLAND_DISPLAY|DBUS_SESSION_BUS_ADDRESS|XDG_\w+|USERPROFILE|APPDATA|LOCALAPPDATA|SystemRoot|TEMP|TMP)$/

/** Returns the variables of the user's session. They contain no credentials. */
export function sessionVariables(environment: Environment): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => sessionVariable.test(name)))
}

/** Removes `WB_API_KEY`, so that child processes do not inherit it. */
export function removeCredential(environment: Record<string, string | undefined>): void {
  delete environment.WB_API_KEY
}

/** Returns the home folder: `HOME`, or `USERPROFILE` on Windows, else that of the operating system. */
export function homeFolder(environment: Environment): string {
  return (hostFacts.platform === 'win32' ? environment.USERPROFILE : environment.HOME) || homedir()
}

/** True if `PATH` has a program of this name. */
export function isOnPath(program: string, environment: Environment): boolean {
  return pathFolders(environment).some(folder => isExecutable(join(folder, program)))
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Returns the variables that are not empty. */
export function nonEmpty(environment: Environment): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([, value]) => value))
}
