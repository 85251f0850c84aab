import { isAbsolute, join } from 'node:path'

/** Resolves a path in the command line relative to the working directory. An empty path stays empty. */
export function resolveTypedPath(cwd: string, path: string): string {
  return path === '' || isAbsolute(path) ? path : join(cwd, path)
}
