import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { LineCounter, parseDocument } from 'yaml'
import { WbError } from '../contract/errors.ts'

const configSizeMax = 262_144
const aliasesMax = 100

/**
 * Parses a YAML 1.2 file: core schema, no custom tags, at most 100 alias expansions.
 *
 * @param sizeBytesMax  maximum size of the file, 256 KB by default
 * @throws validation_error  when the file is invalid; the message contains the file, line and column, but no
 *   text from the file, which could be secret
 */
export function readYaml(path: string, sizeBytesMax = configSizeMax): unknown {
  const lines = new LineCounter()
  const document = withReadErrors(path, () =>
    parseDocument(readTextUpTo(path, sizeBytesMax), {
      schema: 'core',
      prettyErrors: false,
      lineCounter: lines,
    }),
  )
  const fault = document.errors[0] ?? document.warnings[0]
  if (fault) {
    const { line, col } = lines.linePos(fault.pos[0])
    throw unreadableFile(
      path,
      `line ${line}, column ${col}: ${fault.code.toLowerCase().replaceAll('_', ' ')}`,
    )
  }
  return withReadErrors(path, () => document.toJS({ maxAliasCount: aliasesMax }))
}

/** Parses YAML 1.2 from a document, with the limits of {@link readYaml}. Returns undefined if it is invalid. */
export function parseYaml(text: string): unknown {
  try {
    const document = parseDocument(text, { schema: 'core', prettyErrors: false, logLevel: 'silent' })
    return document.errors.length > 0 ? undefined : document.toJS({ maxAliasCount: aliasesMax })
  } catch {
    return undefined
  }
}

function unreadableFile(path: string, reason: string, cause?: unknown): WbError {
  return new WbError(
    'validation_error',
    `${path}: ${reason}`,
    { hint: 'Correct the file. It must be valid YAML 1.2.' },
    { cause },
  )
}

/** Runs a parser function, and converts its exceptions to errors that name the file. */
function withReadErrors<T>(path: string, run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (error instanceof WbError) throw error
    if (error instanceof RangeError) throw unreadableFile(path, 'nested too deeply')
    if (error instanceof ReferenceError)
      throw unreadableFile(path, `more than ${aliasesMax} aliases, or an alias without an anchor`)
    throw unreadableFile(path, 'not YAML')
  }
}

/**
 * Reads a file of UTF-8 text.
 *
 * @throws validation_error  the file cannot be read, is too large, or is not UTF-8
 */
export function readTextUpTo(path: string, sizeBytesMax: number): string {
  const bytes = readBytesUpTo(path, sizeBytesMax)
  if (bytes.length > sizeBytesMax) throw unreadableFile(path, `larger than ${sizeBytesMax / 1_024} KB`)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw unreadableFile(path, 'not UTF-8 text')
  }
}

/**
 * Reads at most one byte more than the maximum. Reads regular files only: opening or reading a FIFO or a device could block the
 * process forever.
 */
function readBytesUpTo(path: string, sizeBytesMax: number): Buffer {
  const buffer = Buffer.alloc(sizeBytesMax + 1)
  let length = 0
  try {
    const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    try {
      requireRegularFile(path, file)
      for (let read = 1; read > 0 && length < buffer.length; length += read)
        read = readSync(file, buffer, length, buffer.length - length, null)
    } finally {
      closeSync(file)
    }
  } catch (cause) {
    if (cause instanceof WbError) throw cause
    const code = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : ''
    throw new WbError('validation_error', `${path}: cannot be read${code}`, {
      hint: 'Specify a file that you are allowed to read.',
    })
  }
  return buffer.subarray(0, length)
}

/** @throws validation_error */
function requireRegularFile(path: string, file: number): void {
  if (fstatSync(file).isFile()) return
  throw new WbError('validation_error', `${path}: cannot be read: not a regular file`, {
    hint: 'Specify a file, not a folder, a pipe or a device.',
  })
}
