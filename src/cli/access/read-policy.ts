import { UsageError } from '../errors.ts'
import { readText } from '../ingest/read-text.ts'
import { resolveTypedPath } from '../resolve-typed-path.ts'

/**
 * Reads a policy from a file, without the white space at its ends.
 *
 * @throws UsageError  the file cannot be read, or is empty
 */
export async function readPolicy(cwd: string, path: string): Promise<string> {
  const result = await readText(resolveTypedPath(cwd, path), { follow: true })
  if ('failure' in result)
    throw new UsageError(
      `${path} cannot be read as text${result.failure === 'system' ? `: ${result.message}` : ''}`,
    )
  const policy = result.text.trim()
  if (policy === '') throw new UsageError(`${path} is empty`)
  return policy
}
