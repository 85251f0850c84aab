import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { packageRoot } from '../base/package.ts'
import { libraryUnavailable } from './faults.ts'
import type { KeychainEntries, KeychainFault } from './keychain.ts'
import type { KeychainLibrary } from './libraries.ts'

export interface KeychainCall {
  id: number
  name: keyof KeychainEntries
  input: readonly string[]
}
export type KeychainResult =
  | { id: number; value: unknown }
  | { id: number; fault: KeychainFault; text: string }

export type ProcessVariables = Readonly<Record<string, string | undefined>>

/** Idle time after which the library process is stopped. It uses 40 MB of memory. */
const idleMs = 10_000

/** Running child processes. They are killed when this process exits. */
const runningChildren = new Set<ChildProcess>()
const killChildren = () => {
  for (const child of runningChildren) child.kill('SIGKILL')
}

/** A separate process that accesses keychain entries. */
export interface KeychainProcess {
  readonly entries: KeychainEntries
  /** Ends the process, and rejects its pending calls with an error. The next call starts a new process. */
  stop(error: Error): void
}

/**
 * Runs a library in a separate process. The first call starts the process.
 *
 * A native call that waits for a keychain cannot be canceled: an abort signal has no effect, and Node.js
 * waits for the call at exit, even after `process.exit`. In a measurement with a stopped Secret Service, keytar blocked
 * for 25 s, `findCredentials` of `@napi-rs/keyring` blocked forever, and the constructor of its entries blocked the
 * thread for 2 s. A separate process can be killed, and a crash of the library does not affect the command.
 *
 * @param environment  environment variables of the process; the library needs them to find the user's session
 */
export function startKeychainProcess(
  library: KeychainLibrary,
  clock: Clock,
  environment: ProcessVariables,
): KeychainProcess {
  const pending = new Map<number, { resolve(value: never): void; reject(error: Error): void }>()
  let child: ChildProcess | undefined
  let nextId = 0
  let cancelIdleTimer = () => {}

  function start(): ChildProcess {
    const entry = join(packageRoot(), 'dist', 'src', 'keychain', 'worker.js')
    const newChild = spawn(process.execPath, [entry, library], {
      env: environment,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      windowsHide: true,
    })
    if (runningChildren.size === 0) process.once('exit', killChildren)
    runningChildren.add(newChild)
    const handleEnd = (error: unknown) => {
      runningChildren.delete(newChild)
      if (runningChildren.size === 0) process.off('exit', killChildren)
      if (child === newChild) stop(libraryUnavailable(library, 'unavailable', error))
    }
    newChild.on('error', handleEnd)
    newChild.on('exit', (status, signal) =>
      handleEnd(new Error(`its process ended with ${signal ?? status}`)),
    )
    newChild.on('message', (result: KeychainResult) => handleResult(result))
    return newChild
  }

  function handleResult(result: KeychainResult): void {
    const call = pending.get(result.id)
    pending.delete(result.id)
    if (pending.size === 0) allowExit()
    if ('fault' in result) call?.reject(libraryUnavailable(library, result.fault, new Error(result.text)))
    else call?.resolve(result.value as never)
  }

  function keepAlive(): void {
    cancelIdleTimer()
    child?.ref()
    child?.channel?.ref()
  }

  function allowExit(): void {
    child?.unref()
    child?.channel?.unref()
    cancelIdleTimer()
    cancelIdleTimer = clock.after(idleMs, () => stop(new Error('the keychain was not used')))
  }

  function stop(error: Error): void {
    cancelIdleTimer()
    child?.kill('SIGKILL')
    child = undefined
    for (const call of pending.values()) call.reject(error)
    pending.clear()
  }

  function send<T>(name: keyof KeychainEntries, ...input: readonly string[]): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      child ??= start()
      const id = nextId++
      pending.set(id, { resolve, reject })
      keepAlive()
      // If the process has ended, its `exit` or `error` event rejects the call.
      child.send({ id, name, input } satisfies KeychainCall, () => {})
    })
  }

  return {
    entries: {
      getPassword: (service, account) => send('getPassword', service, account),
      setPassword: (service, account, password) => send('setPassword', service, account, password),
      deletePassword: (service, account) => send('deletePassword', service, account),
      findCredentials: service => send('findCredentials', service),
    },
    stop,
  }
}
