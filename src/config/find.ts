import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { WbError } from '../contract/errors.ts'

const configFileName = 'workbase.yaml'
const systemFolder = '/etc/workbase'

/** Which configuration file is in force, or that there is none. */
export interface Found {
  /** Absolute; null when every key has its default. */
  readonly path: string | null
  readonly origin: 'flag' | 'environment' | 'working directory' | 'data directory' | 'system' | 'defaults'
  /** A file in the working directory that nobody named or trusts: it is not read. A server refuses to start beside it. */
  readonly untrusted?: string
}

export interface Places {
  /** What `--config` names. */
  flag?: string | undefined
  /** What `WB_CONFIG` names. */
  env?: string | undefined
  /** The file of the working directory, where that is trusted. */
  trusted?: string | undefined
  cwd: string
  dataDir: string
  systemDir?: string
}

/**
 * The first of: `--config`, `WB_CONFIG`, a working directory that is trusted, the data directory, `/etc/workbase`. A named file is not looked for, only
 * taken; whether it is there shows when it is read.
 *
 * @throws validation_error  a place that may not be looked into
 * @see docs/configuration.md
 */
export function findConfig({ flag, env, trusted, cwd, dataDir, systemDir = systemFolder }: Places): Found {
  if (flag) return { path: resolve(cwd, flag), origin: 'flag' }
  if (env) return { path: resolve(cwd, env), origin: 'environment' }
  if (trusted) return { path: trusted, origin: 'working directory' }
  const inForce = foundIn(dataDir, 'data directory') ??
    foundIn(systemDir, 'system') ?? { path: null, origin: 'defaults' }
  const here = resolve(cwd, configFileName)
  const isStranger = here !== resolve(dataDir, configFileName) && isFile(here)
  return isStranger ? { ...inForce, untrusted: here } : inForce
}

function foundIn(folder: string, origin: Found['origin']): Found | undefined {
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
      `${path}: cannot be looked at`,
      { hint: 'Check its permissions.' },
      { cause },
    )
  }
}
