import { isAbsolute, join } from 'node:path'

/** Resolves a path of the command line against the working directory. An empty path stays empty. */
export function resolveTypedPath(cwd: string, path: string): string {
  return path === '' || isAbsolute(path) ? path : join(cwd, path)
}
