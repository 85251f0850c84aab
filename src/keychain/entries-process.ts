import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { packageRoot } from '../base/package.ts'
import { libraryUnavailable } from './faults.ts'
import type { KeychainEntries, KeychainFault } from './keychain.ts'
import type { KeychainLibrary } from './libraries.ts'

export interface EntriesCall {
  id: number
  name: keyof KeychainEntries
  input: readonly string[]
}
export type EntriesResult =
  | { id: number; value: unknown }
  | { id: number; fault: KeychainFault; text: string }

export type ProcessVariables = Readonly<Record<string, string | undefined>>

/** Idle time in milliseconds after which the process is ended. It takes 40 MB. */
const idleMs = 10_000

/** Child processes of this process, which end with it. */
const running = new Set<ChildProcess>()
const endAll = () => {
  for (const child of running) child.kill('SIGKILL')
}

/** Entries that a separate process accesses. */
export interface EntriesProcess {
  readonly entries: KeychainEntries
  /** Ends the process, and rejects its pending calls with an error. The next call starts another one. */
  stop(error: Error): void
}

/**
 * Runs a library in a separate process, which the first call starts.
 *
 * A native call that waits for a keychain cannot be canceled: an abort signal has no effect, and Node.js
 * waits for the call at exit, even after `process.exit`. Measured against a stopped Secret Service: keytar
 * blocks for 25 s, `findCredentials` of `@napi-rs/keyring` forever, and the latter's constructor blocks its
 * thread for 2 s. A process can be killed, and a crash of the library affects no other process.
 *
 * @param environment  variables for the library, which needs them to find the user's session
 */
export function startEntriesProcess(
  library: KeychainLibrary,
  clock: Clock,
  environment: ProcessVariables,
): EntriesProcess {
  const waiting = new Map<number, { resolve(value: never): void; reject(error: Error): void }>()
  let child: ChildProcess | undefined
  let nextId = 0
  let rest = () => {}

  function start(): ChildProcess {
    const entry = join(packageRoot(), 'dist', 'src', 'keychain', 'worker.js')
    const started = spawn(process.execPath, [entry, library], {
      env: environment,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      windowsHide: true,
    })
    if (running.size === 0) process.once('exit', endAll)
    running.add(started)
    const gone = (error: unknown) => {
      running.delete(started)
      if (running.size === 0) process.off('exit', endAll)
      if (child === started) stop(libraryUnavailable(library, 'unavailable', error))
    }
    started.on('error', gone)
    started.on('exit', (status, signal) => gone(new Error(`its process ended with ${signal ?? status}`)))
    started.on('message', (answer: EntriesResult) => take(answer))
    return started
  }

  function take(answer: EntriesResult): void {
    const call = waiting.get(answer.id)
    waiting.delete(answer.id)
    if (waiting.size === 0) letGo()
    if ('fault' in answer) call?.reject(libraryUnavailable(library, answer.fault, new Error(answer.text)))
    else call?.resolve(answer.value as never)
  }

  function hold(): void {
    rest()
    child?.ref()
    child?.channel?.ref()
  }

  function letGo(): void {
    child?.unref()
    child?.channel?.unref()
    rest()
    rest = clock.after(idleMs, () => stop(new Error('the keychain was not used')))
  }

  function stop(error: Error): void {
    rest()
    child?.kill('SIGKILL')
    child = undefined
    for (const call of waiting.values()) call.reject(error)
    waiting.clear()
  }

  function ask<T>(name: keyof KeychainEntries, ...input: readonly string[]): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      child ??= start()
      const id = nextId++
      waiting.set(id, { resolve, reject })
      hold()
      // If the process is gone, its `exit` or `error` event rejects the call.
      child.send({ id, name, input } satisfies EntriesCall, () => {})
    })
  }

  return {
    entries: {
      getPassword: (service, account) => ask('getPassword', service, account),
      setPassword: (service, account, password) => ask('setPassword', service, account, password),
      deletePassword: (service, account) => ask('deletePassword', service, account),
      findCredentials: service => ask('findCredentials', service),
    },
    stop,
  }
}
