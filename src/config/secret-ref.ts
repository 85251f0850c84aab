import { closeSync, fstatSync, openSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { posix } from 'node:path'
import { WbError } from '../contract/errors.ts'
import type { ConfigEnvironment } from './config-environment.ts'

const secretBytesMax = 65_536
const forbiddenFolder = /^\/(?:proc|sys|dev)(?:\/|$)/

/**
 * Returns a reference in normalized form: without `.` segments and duplicate slashes in a file path.
 *
 * @returns undefined for a file path that is relative, contains `..`, or is under /proc, /sys or /dev
 */
export function normalizeRef(ref: string): string | undefined {
  if (!ref.startsWith('file:')) return ref
  const path = ref.slice('file:'.length)
  if (!path.startsWith('/') || path.includes('\0') || path.split(/[/\\]/).includes('..')) return undefined
  const normal = posix.normalize(path).replace(/^\/+/, '/')
  return forbiddenFolder.test(normal) ? undefined : `file:${normal}`
}

/**
 * Reads the secret that a reference points to. Secrets are not cached.
 *
 * @param ref  `env:NAME`, or `file:/absolute/path`, from which trailing white space is removed
 * @throws validation_error  when the reference cannot be resolved; the message contains the reference, but never the
 *   secret
 * @see docs/configuration.md#secrets
 */
export function resolveSecret(ref: string, environment: ConfigEnvironment): string {
  const normal = normalizeRef(ref)
  if (normal === undefined) throw unresolvedSecret(ref, 'is not a file that can contain a secret')
  if (normal.startsWith('env:')) return readVariable(ref, environment)
  if (normal.startsWith('file:')) return readSecretPath(ref, normal.slice('file:'.length))
  throw unresolvedSecret(ref, 'has a prefix that this runtime does not resolve')
}

function unresolvedSecret(
  ref: string,
  reason: string,
  hint = 'Use env:NAME or file:/absolute/path.',
): WbError {
  return new WbError('validation_error', `${ref} ${reason}`, { hint })
}

function readVariable(ref: string, environment: ConfigEnvironment): string {
  const name = ref.slice('env:'.length)
  const value = environment.get(name)
  if (value) return value
  throw unresolvedSecret(
    ref,
    'is not set',
    `Set ${name} where the runtime is started, or in the file .env in its data directory.`,
  )
}

function readSecretPath(ref: string, path: string): string {
  const secret = readSecretFile(ref, path).trimEnd()
  if (secret === '') throw unresolvedSecret(ref, 'is empty', `Write the secret to ${path}.`)
  return secret
}

function readSecretFile(ref: string, path: string): string {
  let file: number | undefined
  try {
    const real = realpathSync(path)
    if (forbiddenFolder.test(real)) throw unresolvedSecret(ref, 'is not a file that can contain a secret')
    if (!statSync(real).isFile()) throw unresolvedSecret(ref, 'is not a file that can contain a secret')
    file = openSync(real, 'r')
    if (fstatSync(file).size > secretBytesMax) throw unresolvedSecret(ref, 'is larger than 64 KB')
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error instanceof WbError) throw error
    throw unresolvedSecret(
      ref,
      'cannot be read',
      `Store the secret in ${path}, and let the runtime read this file.`,
    )
  } finally {
    if (file !== undefined) closeSync(file)
  }
}
