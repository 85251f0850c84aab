import { readFileSync } from 'node:fs'
import { UsageError } from '../faults.ts'
import { withDefaultSignals } from '../terminal/signals.ts'

/**
 * A body from the command line: the text itself, `@file`, or `-` for stdin.
 *
 * @throws UsageError the file cannot be read
 */
export async function requestBody(given: string): Promise<string> {
  if (given === '-') return readStdin()
  if (!given.startsWith('@')) return given
  try {
    return withDefaultSignals(() => readFileSync(given.slice(1), 'utf8'))
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined
    if (code === undefined) throw error
    const why = code === 'ENOENT' ? 'there is no such file' : code
    throw new UsageError(`"${given.slice(1)}" cannot be read: ${why}`)
  }
}

/** All of stdin, as text. */
export async function readStdin(): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of process.stdin) parts.push(part as Buffer)
  return Buffer.concat(parts).toString('utf8')
}
