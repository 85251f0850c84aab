import { isAbsolute, join } from 'node:path'

/** Returns a path that a person typed as seen from the working directory. An empty path stays empty and names no file. */
export function resolveTypedPath(cwd: string, path: string): string {
  return path === '' || isAbsolute(path) ? path : join(cwd, path)
}
