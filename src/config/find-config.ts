import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { WbError } from '../contract/errors.ts'

const configFileName = 'workbase.yaml'
const systemFolder = '/etc/workbase'

/** Configuration file that applies. */
export interface ConfigFile {
  /** Absolute path; null if every key has its default. */
  readonly path: string | null
  readonly origin: 'flag' | 'environment' | 'working directory' | 'data directory' | 'system' | 'defaults'
  /**
   * Path of a file in the working directory that is neither given nor trusted. It is not read, and a server
   * refuses to start.
   */
  readonly untrusted?: string
}

export interface ConfigLocations {
  /** Value of `--config`. */
  flag?: string | undefined
  /** Value of `WB_CONFIG`. */
  env?: string | undefined
  /** Path of the file in the working directory, if trusted. */
  trusted?: string | undefined
  cwd: string
  dataDir: string
  systemDir?: string
}

/**
 * Returns the first of: `--config`, `WB_CONFIG`, the file in a trusted working directory, in the data
 * directory, in `/etc/workbase`. It does not check that a given or trusted file exists; reading it does.
 *
 * @throws validation_error  when a location cannot be accessed
 * @see docs/configuration.md
 */
export function findConfig({
  flag,
  env,
  trusted,
  cwd,
  dataDir,
  systemDir = systemFolder,
}: ConfigLocations): ConfigFile {
  if (flag) return { path: resolve(cwd, flag), origin: 'flag' }
  if (env) return { path: resolve(cwd, env), origin: 'environment' }
  if (trusted) return { path: trusted, origin: 'working directory' }
  const applied = configFileIn(dataDir, 'data directory') ??
    configFileIn(systemDir, 'system') ?? { path: null, origin: 'defaults' }
  const localFile = resolve(cwd, configFileName)
  const isUntrusted = localFile !== resolve(dataDir, configFileName) && isFile(localFile)
  return isUntrusted ? { ...applied, untrusted: localFile } : applied
}

function configFileIn(folder: string, origin: ConfigFile['origin']): ConfigFile | undefined {
  const path = join(resolve(folder), configFileName)
  return isFile(path) ? { path, origin } : undefined
}

function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOTDIR') return false
    throw new WbError(
      'validation_error',
      `${path}: cannot be read`,
      { hint: 'Check its permissions.' },
      { cause },
    )
  }
}
