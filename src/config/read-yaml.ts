import { closeSync, openSync, readSync } from 'node:fs'
import { LineCounter, parseDocument } from 'yaml'
import { WbError } from '../contract/errors.ts'

const configSizeMax = 262_144
const aliasesMax = 100

/**
 * Parses a YAML 1.2 file: core schema, no custom tags, at most 100 alias expansions.
 *
 * @param sizeBytesMax  maximum size of the file, 256 KB by default
 * @throws validation_error  when the file is invalid; the message has file, line and column, but no text of
 *   the file, which may be secret
 */
export function readYaml(path: string, sizeBytesMax = configSizeMax): unknown {
  const lines = new LineCounter()
  const document = guarded(path, () =>
    parseDocument(readText(path, sizeBytesMax), {
      schema: 'core',
      prettyErrors: false,
      lineCounter: lines,
    }),
  )
  const fault = document.errors[0] ?? document.warnings[0]
  if (fault) {
    const { line, col } = lines.linePos(fault.pos[0])
    throw unreadable(path, `line ${line}, column ${col}: ${fault.code.toLowerCase().replaceAll('_', ' ')}`)
  }
  return guarded(path, () => document.toJS({ maxAliasCount: aliasesMax }))
}

function unreadable(path: string, reason: string, cause?: unknown): WbError {
  return new WbError(
    'validation_error',
    `${path}: ${reason}`,
    { hint: 'Correct the file; it is YAML 1.2.' },
    { cause },
  )
}

function guarded<T>(path: string, run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (error instanceof WbError) throw error
    if (error instanceof RangeError) throw unreadable(path, 'nested too deeply')
    if (error instanceof ReferenceError)
      throw unreadable(path, `more than ${aliasesMax} aliases, or one without anchor`)
    throw unreadable(path, 'not YAML')
  }
}

function readText(path: string, sizeBytesMax: number): string {
  const bytes = readBytes(path, sizeBytesMax)
  if (bytes.length > sizeBytesMax) throw unreadable(path, `larger than ${sizeBytesMax / 1_024} KB`)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw unreadable(path, 'not UTF-8 text')
  }
}

/** Reads at most one byte more than allowed, also from a pipe, which has no size. */
function readBytes(path: string, sizeBytesMax: number): Buffer {
  const buffer = Buffer.alloc(sizeBytesMax + 1)
  let length = 0
  try {
    const file = openSync(path, 'r')
    try {
      for (let read = 1; read > 0 && length < buffer.length; length += read)
        read = readSync(file, buffer, length, buffer.length - length, null)
    } finally {
      closeSync(file)
    }
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : ''
    throw new WbError('validation_error', `${path}: cannot be read${code}`, {
      hint: 'Name a file that you may read.',
    })
  }
  return buffer.subarray(0, length)
}
