import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { once } from './once.ts'

/** The build of this package, as `npm run build` recorded it. */
export interface PackageBuild {
  readonly version: string
  /** Abbreviated commit hash; `unknown` if built outside a Git clone. */
  readonly commit: string
  /** ISO 8601 with milliseconds. */
  readonly buildTime: string
}

/**
 * Returns the absolute path of the folder with this package's `package.json`. Works from source and from a bundle.
 *
 * @throws Error  no parent folder of this file contains it
 */
export const packageRoot = once(() => rootAbove(dirname(fileURLToPath(import.meta.url))))

function rootAbove(folder: string): string {
  const manifest = join(folder, 'package.json')
  if (existsSync(manifest)) {
    const { name } = JSON.parse(readFileSync(manifest, 'utf8')) as { name?: unknown }
    if (name === 'workbase') return folder
  }
  const parent = dirname(folder)
  if (parent === folder) throw new Error('no package.json named "workbase" above this file')
  return rootAbove(parent)
}

export const packageVersion = once(() => {
  const manifest = readFileSync(join(packageRoot(), 'package.json'), 'utf8')
  return (JSON.parse(manifest) as { version: string }).version
})

/**
 * Returns the build of this package; undefined if it has never been built. Caches the result of the first call. Call it
 * at startup, because a later build replaces the file while a server is still running the earlier build.
 */
export const packageBuild = once((): PackageBuild | undefined => {
  const path = join(packageRoot(), 'dist', 'build.json')
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as PackageBuild) : undefined
})

/** Returns the exact version of a dependency. */
export function dependencyVersion(name: string): string | undefined {
  return dependencies()[name]
}

const dependencies = once(() => {
  const manifest = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as {
    dependencies: Readonly<Record<string, string>>
  }
  return manifest.dependencies
})
