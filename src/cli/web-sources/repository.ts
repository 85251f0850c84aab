import { spawn } from 'node:child_process'
import { readdir, rm, stat } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import type { PageNetwork } from '../local.ts'
import { formatByteSize } from '../terminal/byte-size.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { SourceProblem } from './source-problem.ts'

/** Maximum size of a clone on disk. */
const cloneBytesMax = 2_000_000_000
const cloneTimeoutMs = 600_000
const sizeCheckMs = 1_000
/** Maximum length of the error output that is kept. */
const errorCharsMax = 4_000

interface CloneOptions {
  readonly network: PageNetwork
  readonly allowsPrivate: boolean
  readonly env: Readonly<Record<string, string | undefined>>
  readonly signal: AbortSignal
  readonly timeoutMs?: number
}

/**
 * Copies the newest files of a Git repository into a folder that does not exist yet, with the `git` of the user. Runs no
 * hooks, and copies no submodules, no symbolic links and no files of Git LFS.
 *
 * @param ref  branch or tag; undefined for the default branch
 * @throws SourceProblem  the repository cannot be read, or must not be read
 */
export async function cloneRepository(
  url: string,
  ref: string | undefined,
  folder: string,
  options: CloneOptions,
): Promise<void> {
  const addressSettings = await checkAddress(url, options)
  if (ref !== undefined && !/^[\w][\w./+-]*$/.test(ref))
    throw new SourceProblem('fetch_failed', 'the text after # is not the name of a branch or a tag')
  const cloneArguments = [
    '--depth=1',
    '--single-branch',
    '--no-tags',
    '--no-recurse-submodules',
    '--template=',
    '--quiet',
  ]
  if (ref !== undefined) cloneArguments.push(`--branch=${ref}`)
  await runGit([...addressSettings, 'clone', ...cloneArguments, '--', url, folder], options, folder)
  const links = await runGit(['-C', folder, 'ls-files', '--stage', '-z'], options)
  await Promise.all(linkPaths(links).map(path => rm(join(folder, path), { force: true })))
}

/** Checks the address of a repository. Returns settings that make Git connect to the checked address. */
async function checkAddress(address: string, { network, allowsPrivate }: CloneOptions): Promise<string[]> {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url?.protocol === 'file:') {
    if (!allowsPrivate || url.host !== '')
      throw new SourceProblem('address_refused', 'to read a repository of this machine, add --allow-private')
    return []
  }
  const isSsh = url === undefined || !/^https?:$/.test(url.protocol)
  if (url && !['https:', 'ssh:'].includes(url.protocol))
    throw new SourceProblem(
      'address_refused',
      `${url.protocol} URLs of repositories are not read; use https: or ssh:`,
    )
  if (url && (url.password !== '' || (!isSsh && url.username !== '')))
    throw new SourceProblem('address_refused', 'the URL contains credentials; use a credential helper of Git')
  const host = url ? url.hostname : address.slice(address.indexOf('@') + 1, address.indexOf(':'))
  if (!/^\[?[\w.:-]+\]?$/.test(host) || host.startsWith('-'))
    throw new SourceProblem('address_refused', 'its host is not valid')
  if (isSsh && allowsPrivate) return []
  const addresses = await resolveHost(network, new URL(`https://${host}:${url?.port || 443}/`))
  return isSsh || isIP(host) || !url
    ? []
    : ['-c', `http.curloptResolve=${host}:${url.port || 443}:${addresses.map(bracketed).join(',')}`]
}

async function resolveHost(network: PageNetwork, url: URL): Promise<readonly string[]> {
  try {
    return await network.resolve(url)
  } catch (error) {
    if (!(error instanceof Error)) throw error
    if (error.name === 'PageAddressRefused') throw new SourceProblem('address_refused', error.message)
    throw new SourceProblem('fetch_failed', 'the host was not found')
  }
}

function bracketed(address: string): string {
  return isIP(address) === 6 ? `[${address}]` : address
}

/** Settings that override those of the user and of the repository. */
function safeSettings(allowsPrivate: boolean): string[] {
  return [
    'core.hooksPath=/dev/null',
    'core.fsmonitor=false',
    'core.symlinks=false',
    'core.protectHFS=true',
    'core.protectNTFS=true',
    'http.followRedirects=false',
    'http.proxy=',
    'http.lowSpeedLimit=1000',
    'http.lowSpeedTime=60',
    'protocol.allow=never',
    'protocol.https.allow=always',
    'protocol.ssh.allow=always',
    `protocol.file.allow=${allowsPrivate ? 'always' : 'never'}`,
    'submodule.recurse=false',
    'gc.auto=0',
    'maintenance.auto=false',
  ].flatMap(setting => ['-c', setting])
}

/** Variables that change what Git runs or where it connects. */
const removedVariables = /^(?:WB_|GIT_|(?:https?|all|no)_proxy$)/i
const keptVariables = [
  'GIT_SSH',
  'GIT_SSH_COMMAND',
  'GIT_ASKPASS',
  'GIT_CONFIG_GLOBAL',
  'GIT_CONFIG_SYSTEM',
  'GIT_CONFIG_NOSYSTEM',
]

function gitEnvironment(env: CloneOptions['env']): Record<string, string> {
  const kept = Object.entries(env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && (keptVariables.includes(entry[0]) || !removedVariables.test(entry[0])),
  )
  return {
    ...Object.fromEntries(kept),
    GIT_TERMINAL_PROMPT: '0',
    GIT_LFS_SKIP_SMUDGE: '1',
    LC_ALL: 'C',
  }
}

/**
 * Runs Git without a shell. Ends it if the folder becomes too large or the time is over.
 *
 * @returns its output
 */
async function runGit(
  args: readonly string[],
  { allowsPrivate, env, signal, timeoutMs = cloneTimeoutMs }: CloneOptions,
  watchedFolder?: string,
): Promise<string> {
  signal.throwIfAborted()
  const child = spawn('git', [...safeSettings(allowsPrivate), ...args], {
    env: gitEnvironment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
    windowsHide: true,
  })
  let problem: SourceProblem | undefined
  const end = (reason?: SourceProblem) => {
    problem ??= reason
    child.kill('SIGKILL')
  }
  const onAbort = () => end()
  signal.addEventListener('abort', onAbort)
  const deadline = setTimeout(
    () => end(new SourceProblem('fetch_failed', `git did not end within ${timeoutMs / 1_000} seconds`)),
    timeoutMs,
  )
  const sizeCheck = setInterval(async () => {
    if (watchedFolder && (await folderBytes(watchedFolder)) > cloneBytesMax)
      end(
        new SourceProblem(
          'payload_too_large',
          `the repository is larger than ${formatByteSize(cloneBytesMax)}`,
        ),
      )
  }, sizeCheckMs)
  const output: string[] = []
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => output.push(text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-errorCharsMax)
  })
  try {
    const status = await new Promise<number | null>((resolve, reject) => {
      child.on('error', reject)
      child.on('close', resolve)
    })
    signal.throwIfAborted()
    if (problem) throw problem
    if (status !== 0) throw new SourceProblem('fetch_failed', `git could not read it: ${lastLine(errors)}`)
    return output.join('')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
      throw new SourceProblem('fetch_failed', 'git is not installed')
    throw error
  } finally {
    clearTimeout(deadline)
    clearInterval(sizeCheck)
    signal.removeEventListener('abort', onAbort)
  }
}

/** Returns the last line that explains an error of Git. */
function lastLine(errors: string): string {
  const lines = errors.split('\n').filter(line => /^(?:fatal|error|remote|ssh|\S+: )/.test(line))
  return plainLine(
    (lines.find(line => line.startsWith('fatal:')) ?? lines.at(-1) ?? 'it failed').replace(/^fatal: /, ''),
  )
}

/** Returns the paths of symbolic links in the output of `git ls-files --stage -z`. */
function linkPaths(output: string): string[] {
  return output
    .split('\0')
    .filter(line => line.startsWith('120000 '))
    .map(line => line.slice(line.indexOf('\t') + 1))
}

async function folderBytes(folder: string): Promise<number> {
  let bytes = 0
  for (const name of await readdir(folder, { recursive: true }).catch(() => []))
    bytes += await stat(join(folder, name)).then(
      ({ size }) => size,
      () => 0,
    )
  return bytes
}
