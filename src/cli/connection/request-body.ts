import { readFileSync } from 'node:fs'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { resolveTypedPath } from '../resolve-typed-path.ts'

/**
 * Returns a request body from the command line: the text, the content of `@FILE`, or stdin for `-`.
 *
 * @throws UsageError  the file cannot be read
 */
export async function readRequestBody(
  given: string,
  io: Pick<Io, 'stdin' | 'cwd' | 'signals'>,
): Promise<string> {
  if (given === '-') return readAll(io.stdin)
  if (!given.startsWith('@')) return given
  try {
    return io.signals.withDefaults(() => readFileSync(resolveTypedPath(io.cwd, given.slice(1)), 'utf8'))
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined
    if (code === undefined) throw error
    const why = code === 'ENOENT' ? 'file not found' : code
    throw new UsageError(`"${given.slice(1)}" cannot be read: ${why}`)
  }
}

/** Reads a stream to its end, as text. */
export async function readAll(stream: AsyncIterable<unknown>): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of stream) parts.push(part as Buffer)
  return Buffer.concat(parts).toString('utf8')
}
