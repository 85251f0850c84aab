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

/** Settings from the environment for connections to other machines. */
export interface ConnectionSettings {
  readonly proxies: { readonly http?: string; readonly https?: string; readonly except?: string }
  /** Files with certificate authorities to trust, by environment variable. */
  readonly authorities: { readonly SSL_CERT_FILE?: string; readonly NODE_EXTRA_CA_CERTS?: string }
  /** Maximum time without data, in milliseconds. */
  readonly idleTimeoutMs?: number
}

/**
 * Reads proxies, certificate authorities and the idle timeout. The lowercase variable of a proxy takes
 * precedence over the uppercase one, as in other tools.
 *
 * @throws UsageError  the address of a proxy is invalid, or `WB_IDLE_TIMEOUT` is not a whole number of seconds. The
 *   message does not contain the address, because it could contain a password
 */
export function connectionSettings(environment: Environment): ConnectionSettings {
  const variables = nonEmpty(environment)
  const { SSL_CERT_FILE, NODE_EXTRA_CA_CERTS } = variables
  const proxies = {
    http: proxyAddress(variables.http_proxy ?? variables.HTTP_PROXY, 'HTTP_PROXY'),
    https: proxyAddress(variables.https_proxy ?? variables.HTTPS_PROXY, 'HTTPS_PROXY'),
    except: variables.no_proxy ?? variables.NO_PROXY,
  }
  return {
    proxies,
    authorities: { SSL_CERT_FILE, NODE_EXTRA_CA_CERTS },
    idleTimeoutMs: parseIdleTimeoutMs(variables.WB_IDLE_TIMEOUT),
  }
}

/** Parses a number of seconds, from one second to one day, and returns milliseconds. */
function parseIdleTimeoutMs(value: string | undefined): number | undefined {
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

/** Returns true if the locale uses UTF-8, or no locale is set. @see POSIX.1-2017 section 8.2 */
export function supportsUtf8(environment: Environment): boolean {
  const { LC_ALL, LC_CTYPE, LANG } = nonEmpty(environment)
  const locale = LC_ALL ?? LC_CTYPE ?? LANG
  return locale === undefined || /utf-?8/i.test(locale)
}

/** Returns the line width in `COLUMNS`; undefined if it is not set. */
export function columnsSetting(environment: Environment): number | undefined {
  const { COLUMNS = '' } = environment
  return /^[1-9]\d{1,3}$/.test(COLUMNS) ? Number(COLUMNS) : undefined
}

/** Returns the name of the login shell, such as `zsh`; undefined if `SHELL` is not set. */
export function loginShell(environment: Environment): string | undefined {
  const { SHELL } = nonEmpty(environment)
  return SHELL && basename(SHELL)
}

/** Clipboard programs that copy their stdin, with the environment variable that they require. */
const clipboards: readonly { command: readonly [string, ...string[]]; display?: string }[] = [
  { command: ['wl-copy'], display: 'WAYLAND_DISPLAY' },
  { command: ['xclip', '-selection', 'clipboard'], display: 'DISPLAY' },
  { command: ['xsel', '--clipboard', '--input'], display: 'DISPLAY' },
  { command: ['pbcopy'] },
  { command: ['clip.exe'] },
]

/** Returns the command that copies its stdin to the clipboard, or undefined. */
export function clipboardCommand(environment: Environment): readonly string[] | undefined {
  return clipboards.find(
    ({ command: [program], display }) =>
      (display === undefined || environment[display]) && isOnPath(program, environment),
  )?.command
}

/** Values of `TERM` for terminals without a clipboard. */
const terminalsWithoutClipboard = ['dumb', 'linux']

/** Returns the type of the terminal's clipboard; undefined if the terminal has none. */
export function terminalClipboard(environment: Environment): 'terminal' | 'tmux' | undefined {
  const { TERM, TMUX } = nonEmpty(environment)
  if (TMUX) return 'tmux'
  return TERM === undefined || terminalsWithoutClipboard.includes(TERM) ? undefined : 'terminal'
}

/** Returns the folders of `PATH`, in order. */
export function pathFolders(environment: Environment): readonly string[] {
  return (environment.PATH ?? '').split(delimiter).filter(Boolean)
}

/** Returns true if this machine can open a browser for the user. It cannot in CI, over SSH, or without a display. */
export function hasBrowser(environment: Environment): boolean {
  const { SSH_CONNECTION, SSH_TTY, DISPLAY, WAYLAND_DISPLAY, WSL_DISTRO_NAME } = environment
  if (isCi(environment) || SSH_CONNECTION || SSH_TTY) return false
  return hostFacts.platform !== 'linux' || Boolean(DISPLAY || WAYLAND_DISPLAY || WSL_DISTRO_NAME)
}

/** Names of the variables that libraries need to find the keychain of the user's session. */
const sessionVariablePattern =
  /^(?:HOME|USER|LOGNAME|PATH|LANG|DISPLAY|WAYLAND_DISPLAY|DBUS_SESSION_BUS_ADDRESS|XDG_\w+|USERPROFILE|APPDATA|LOCALAPPDATA|SystemRoot|TEMP|TMP)$/

/** Returns the variables that libraries need to find the keychain. They contain no credentials. */
export function sessionVariables(environment: Environment): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => sessionVariablePattern.test(name)))
}

/** Removes `WB_API_KEY`, so that child processes do not inherit it. */
export function removeCredential(environment: Record<string, string | undefined>): void {
  delete environment.WB_API_KEY
}

/** Returns the home folder: `HOME` (`USERPROFILE` on Windows), or else the one that the operating system reports. */
export function homeFolder(environment: Environment): string {
  return (hostFacts.platform === 'win32' ? environment.USERPROFILE : environment.HOME) || homedir()
}

/** Returns true if a folder in `PATH` has a program of this name. */
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
