import { join, resolve } from 'node:path'
import { statsOf } from '../base/folder.ts'
import { WbError } from '../contract/errors.ts'

const configFileName = 'workbase.yaml'
const systemFolder = '/etc/workbase'

/** The configuration file that applies. */
export interface ConfigFile {
  /** Absolute path; null if there is no file, so that all keys have their defaults. */
  readonly path: string | null
  readonly origin: 'flag' | 'environment' | 'working directory' | 'data directory' | 'system' | 'defaults'
  /**
   * Path of a file in the working directory that the user neither specified nor trusted. The file is not read, and a
   * server does not start.
   */
  readonly untrusted?: string
}

/** Locations in which to search for the configuration file. */
export interface ConfigLocations {
  /** Value of `--config`. */
  flag?: string | undefined
  /** Value of `WB_CONFIG`. */
  env?: string | undefined
  /** Path of the file in the working directory, if trusted. */
  trusted?: string | undefined
  cwd: string
  dataDir: string
  /** Replaces `/etc/workbase` in tests. */
  systemDir?: string
}

/**
 * Returns the first of these files: the value of `--config`, the value of `WB_CONFIG`, the file in a trusted working
 * directory, the file in the data directory, the file in `/etc/workbase`. Does not check that one of the first three
 * exists.
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
  const configFile = configFileIn(dataDir, 'data directory') ??
    configFileIn(systemDir, 'system') ?? { path: null, origin: 'defaults' }
  const localFile = resolve(cwd, configFileName)
  const isUntrusted = localFile !== resolve(dataDir, configFileName) && isFile(localFile)
  return isUntrusted ? { ...configFile, untrusted: localFile } : configFile
}

function configFileIn(folder: string, origin: ConfigFile['origin']): ConfigFile | undefined {
  const path = join(resolve(folder), configFileName)
  return isFile(path) ? { path, origin } : undefined
}

function isFile(path: string): boolean {
  try {
    return statsOf(path)?.isFile() ?? false
  } catch (cause) {
    throw new WbError(
      'validation_error',
      `${path}: cannot be read`,
      { hint: 'Check its permissions.' },
      { cause },
    )
  }
}
