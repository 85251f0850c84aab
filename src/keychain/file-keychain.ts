import { closeSync, fstatSync, openSync, readdirSync, readFileSync, rmSync, type Stats } from 'node:fs'
import { basename, join } from 'node:path'
import { createFolder, statsOf } from '../base/folder.ts'
import { idFrom } from '../base/id.ts'
import { isProcessRunning } from '../base/is-process-running.ts'
import { writePrivateFile } from '../base/private-file.ts'
import { type Keychain, type KeychainCredential, KeychainUnavailable } from './keychain.ts'

/** Content of the JSON file of an entry. */
interface StoredEntry extends KeychainCredential {
  service: string
}

/**
 * Creates a keychain that stores entries in unencrypted files that only their owner can read, for systems without a
 * keychain.
 *
 * Each entry is a separate file, so processes that write different entries do not wait for each other. If other
 * users can read a file, calls throw. They do not change its mode, because other users may already have read it.
 *
 * @param folder  folder that contains only entries; created if missing
 */
export function createFileKeychain(folder: string): Keychain {
  const pathOf = (service: string, account: string) => join(folder, `${idFrom(service, account)}.json`)

  function folderExists(): boolean {
    const stats = statsOf(folder)
    if (stats) requirePrivate(folder, stats, '700')
    return stats !== undefined
  }

  const listFileNames = () => (folderExists() ? readdirSync(folder) : [])

  /** Removes the temporary files of killed processes, because they can contain secrets. */
  function removeTemporaryFiles(isSelected: (name: string) => boolean): void {
    for (const name of listFileNames()) {
      const [, entryName, writer] = /^(.*\.json)\.(\d+)$/.exec(name) ?? []
      if (entryName !== undefined && isSelected(entryName) && !isProcessRunning(Number(writer)))
        rmSync(join(folder, name), { force: true })
    }
  }
  const removeTemporaryFilesOf = (path: string) => removeTemporaryFiles(name => name === basename(path))

  function find(service: string): KeychainCredential[] {
    return listFileNames()
      .filter(name => name.endsWith('.json'))
      .map(name => readEntry(join(folder, name)))
      .filter(stored => stored?.service === service)
      .map(stored => ({ account: stored!.account, password: stored!.password }))
  }

  return asyncKeychain({
    getPassword(service, account) {
      return folderExists() ? (readEntry(pathOf(service, account))?.password ?? null) : null
    },
    setPassword(service, account, password) {
      const path = pathOf(service, account)
      createFolder(folder)
      removeTemporaryFilesOf(path)
      writePrivateFile(path, `${JSON.stringify({ service, account, password } satisfies StoredEntry)}\n`)
    },
    deletePassword(service, account) {
      const path = pathOf(service, account)
      removeTemporaryFilesOf(path)
      const existed = statsOf(path) !== undefined
      rmSync(path, { force: true })
      return existed
    },
    findPassword: service => find(service)[0]?.password ?? null,
    findCredentials: find,
    findAccounts(service) {
      removeTemporaryFiles(() => true)
      return find(service).map(({ account }) => account)
    },
  })
}

/** @returns undefined if the file does not exist, or is invalid */
function readEntry(path: string): StoredEntry | undefined {
  const file = openIfExists(path)
  if (file === undefined) return undefined
  try {
    requirePrivate(path, fstatSync(file), '600')
    return parseStoredEntry(readFileSync(file, 'utf8'))
  } finally {
    closeSync(file)
  }
}

function openIfExists(path: string): number | undefined {
  try {
    return openSync(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function parseStoredEntry(text: string): StoredEntry | undefined {
  try {
    const { service, account, password } = JSON.parse(text) as Partial<Record<keyof StoredEntry, unknown>>
    if (typeof service !== 'string' || typeof account !== 'string') return undefined
    return typeof password === 'string' ? { service, account, password } : undefined
  } catch {
    return undefined
  }
}

/** @throws KeychainUnavailable  another user owns the file, or other users can read or change it */
function requirePrivate(path: string, { uid, mode }: Stats, suggestedMode: '600' | '700'): void {
  if (process.platform === 'win32') return
  if (uid !== process.getuid?.())
    throw fileUnavailable(`${path} belongs to another user.`, 'Run the command as the owner of that file.')
  if ((mode & 0o077) === 0) return
  const quoted = `'${path.replaceAll("'", String.raw`'\''`)}'`
  throw fileUnavailable(
    `${path} contains secrets, and other users can open it.`,
    `chmod ${suggestedMode} ${quoted}`,
  )
}

type Synchronous<K> = {
  [F in keyof K]: K[F] extends (...input: infer I) => Promise<infer O> ? (...input: I) => O : never
}

/** Makes all functions asynchronous, and converts file system errors to `KeychainUnavailable`. */
function asyncKeychain(keychain: Synchronous<Keychain>): Keychain {
  function convertErrors<I extends unknown[], O>(run: (...input: I) => O) {
    return async (...input: I): Promise<O> => {
      try {
        return run(...input)
      } catch (error) {
        const { code, path } = error as NodeJS.ErrnoException
        if (code === undefined) throw error
        throw fileUnavailable(
          `${path ?? 'The file with secrets'} cannot be used: ${code}.`,
          hintOfCode(code),
          error,
        )
      }
    }
  }
  return {
    getPassword: convertErrors(keychain.getPassword),
    setPassword: convertErrors(keychain.setPassword),
    deletePassword: convertErrors(keychain.deletePassword),
    findPassword: convertErrors(keychain.findPassword),
    findCredentials: convertErrors(keychain.findCredentials),
    findAccounts: convertErrors(keychain.findAccounts),
  }
}

function hintOfCode(code: string): string {
  return code === 'ENOSPC' ? 'Free some space on that disk.' : 'Give your user read and write access to it.'
}

function fileUnavailable(message: string, hint: string, cause?: unknown): KeychainUnavailable {
  return new KeychainUnavailable('file', 'unavailable', message, hint, { cause })
}
