import { readFileSync } from 'node:fs'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { resolveTypedPath } from '../resolve-typed-path.ts'

/**
 * Returns the request body for an argument: the content of the file for `@FILE`, stdin for `-`, else the argument.
 *
 * @throws UsageError  the file cannot be read
 */
export async function readRequestBody(
  argument: string,
  io: Pick<Io, 'stdin' | 'cwd' | 'signals'>,
): Promise<string> {
  if (argument === '-') return readAll(io.stdin)
  if (!argument.startsWith('@')) return argument
  try {
    return io.signals.withDefaults(() => readFileSync(resolveTypedPath(io.cwd, argument.slice(1)), 'utf8'))
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined
    if (code === undefined) throw error
    const reason = code === 'ENOENT' ? 'file not found' : code
    throw new UsageError(`"${argument.slice(1)}" cannot be read: ${reason}`)
  }
}

/** Reads a stream to its end, and decodes it as UTF-8. */
export async function readAll(stream: AsyncIterable<unknown>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
