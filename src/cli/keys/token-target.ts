import {
  closeSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { resolve } from 'node:path'
import { randomNameHex } from '../../base/id.ts'
import { errorCodeOf } from '../error-code-of.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { requireWritableFolder } from '../require-writable-folder.ts'
import { findClipboardProgram } from '../terminal/clipboard.ts'

/**
 * Destination for a new token, which the runtime returns only once. It is checked before the token is created, so
 * that the token is not lost.
 */
export interface TokenTarget {
  readonly kind: 'stdout' | 'file' | 'clipboard'
  /** `on stdout`, `in the clipboard`, or the path of the file. */
  readonly location: string
  /** @throws Error  when the token could not be written; the message does not contain the token */
  write(text: string): Promise<void>
}

export interface TargetFlags {
  write?: string
  force?: boolean
  copy?: boolean
}

/**
 * Returns the target selected by the flags, after checking that it is writable.
 *
 * @throws UsageError  when the target cannot receive a token
 */
export function tokenTarget({ write, force = false, copy = false }: TargetFlags, io: Io): TokenTarget {
  if (write !== undefined) return fileTarget(resolve(io.cwd, write), force)
  return copy ? clipboardTarget(io) : stdoutTarget(io)
}

function stdoutTarget(io: Io): TokenTarget {
  if (io.discardsStdout())
    throw new UsageError('stdout is discarded, and the token is shown only once', [
      '--write FILE    writes it to a file that only you can read',
    ])
  return {
    kind: 'stdout',
    location: 'on stdout',
    // Written synchronously, because the error of a Node.js stream would arrive too late to be reported together
    // with the key.
    write: async text => io.writeNow(`${text}\n`),
  }
}

/** Writes a temporary file in the same folder, then moves it to the path atomically. */
function fileTarget(path: string, force: boolean): TokenTarget {
  requireFreePath(path, force)
  requireWritableFolder(path)
  return {
    kind: 'file',
    location: path,
    async write(text) {
      const temporary = `${path}.${randomNameHex(6)}`
      const fd = openSync(temporary, 'wx', 0o600)
      try {
        writeFileSync(fd, `${text}\n`)
        fsyncSync(fd)
        if (force) renameSync(temporary, path)
        else moveWithoutReplacing(temporary, path)
      } finally {
        closeSync(fd)
        rmSync(temporary, { force: true })
      }
    },
  }
}

/** @throws UsageError  when the path exists and may not be replaced */
function requireFreePath(path: string, force: boolean): void {
  const existingStats = lstatSync(path, { throwIfNoEntry: false })
  if (!existingStats) return
  if (existingStats.isSymbolicLink())
    throw new UsageError(`"${path}" is a symbolic link; tokens are not written through links`)
  if (!existingStats.isFile()) throw new UsageError(`"${path}" is not a file`)
  if (!force) throw new UsageError(`"${path}" already exists`, ['add --force to replace it'])
}

/** Moves a file to a path. Does not replace a file that another process has created there in the meantime. */
function moveWithoutReplacing(temporary: string, path: string): void {
  try {
    linkSync(temporary, path)
  } catch (error) {
    // Without support for links, such as on FAT, a file created between the check and the rename is replaced.
    if (errorCodeOf(error) === 'EEXIST' || lstatSync(path, { throwIfNoEntry: false })) throw error
    renameSync(temporary, path)
  }
}

function clipboardTarget(io: Io): TokenTarget {
  const write = findClipboardProgram(io)
  if (!write)
    throw new UsageError('no clipboard program found (wl-copy, xclip, xsel, pbcopy, clip.exe)', [
      '--write FILE    writes the token to a file that only you can read',
    ])
  return { kind: 'clipboard', location: 'in the clipboard', write }
}
