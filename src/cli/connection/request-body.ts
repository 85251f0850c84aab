import { readFileSync } from 'node:fs'
import { UsageError } from '../faults.ts'

/**
 * A body from the command line: the text itself, `@file`, or `-` for stdin.
 *
 * @throws UsageError the file cannot be read
 */
export async function requestBody(given: string): Promise<string> {
  if (given === '-') return readStdin()
  if (!given.startsWith('@')) return given
  try {
    return readFileSync(given.slice(1), 'utf8')
  } catch (error) {
    throw new UsageError(
      `${given.slice(1)} cannot be read: ${error instanceof Error ? error.message : error}`,
    )
  }
}

/** All of stdin, as text. */
export async function readStdin(): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of process.stdin) parts.push(part as Buffer)
  return Buffer.concat(parts).toString('utf8')
}
