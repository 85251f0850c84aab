import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { packageRoot } from '../base/package.ts'
import { unavailable } from './faults.ts'
import type { Entries, KeychainFault } from './keychain.ts'
import type { Library } from './libraries.ts'

export interface Call {
  id: number
  name: keyof Entries
  input: readonly string[]
}
export type Answer = { id: number; value: unknown } | { id: number; fault: KeychainFault; text: string }

export type Variables = Readonly<Record<string, string | undefined>>

/** A process that nobody has asked for this long is ended; it takes 40 MB. */
const idleMs = 10_000

/** Those of this process, which end with it. */
const running = new Set<ChildProcess>()
const endAll = () => {
  for (const child of running) child.kill('SIGKILL')
}

/** Entries that a process of their own keeps. */
export interface EntriesProcess {
  readonly entries: Entries
  /** End it; calls that wait reject with this error. The next call starts another one. */
  stop(error: Error): void
}

/**
 * A library in a process of its own, which is started by the first call.
 *
 * A native call that waits for a keychain cannot be called off: an abort signal does not reach it, and Node.js waits
 * for it at the end, after `process.exit` too. Measured against a Secret Service that is stopped: keytar holds on for
 * 25 s, `findCredentials` of `@napi-rs/keyring` for ever, and the latter's constructor blocks its thread for 2 s. A
 * process can be ended, and takes nobody with it when the library crashes.
 *
 * @param environment  for the library, which finds the person's session by it
 */
export function entriesProcess(library: Library, clock: Clock, environment: Variables): EntriesProcess {
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
      if (child === started) stop(unavailable(library, 'unavailable', error))
    }
    started.on('error', gone)
    started.on('exit', (status, signal) => gone(new Error(`its process ended with ${signal ?? status}`)))
    started.on('message', (answer: Answer) => take(answer))
    return started
  }

  function take(answer: Answer): void {
    const call = waiting.get(answer.id)
    waiting.delete(answer.id)
    if (waiting.size === 0) letGo()
    if ('fault' in answer) call?.reject(unavailable(library, answer.fault, new Error(answer.text)))
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

  function ask<T>(name: keyof Entries, ...input: readonly string[]): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      child ??= start()
      const id = nextId++
      waiting.set(id, { resolve, reject })
      hold()
      // A process that cannot be reached says so itself.
      child.send({ id, name, input } satisfies Call, () => {})
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
