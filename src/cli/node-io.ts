import { once } from 'node:events'
import { fstatSync, statSync, writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { systemClock } from '../base/clock.ts'
import { type Io, type Signals, type TerminationSignal, terminationSignals } from './io.ts'

/** Returns the input and output of this process. No other file of the command line reads `process`. */
export function nodeIo(): Io {
  preventAbortAtExit()
  return {
    // Getters, because Node.js opens a stream at the first access, which takes time.
    get stdin() {
      return process.stdin
    },
    get stdout() {
      return process.stdout
    },
    get stderr() {
      return process.stderr
    },
    env: process.env,
    get cwd() {
      return workingDirectory()
    },
    script: process.argv[1] ?? '',
    clock: systemClock,
    signals,
    setExitStatus(status) {
      process.exitCode = status
    },
    discardsStdout: () => isNullDevice(process.stdout.fd),
    writeNow: text => writeAll(process.stdout.fd, text),
    async openBrowser(url) {
      const { default: open } = await import('open')
      await open(url)
    },
    copyWith: (command, text) => copyWith(command, text, process.env),
  }
}

/** Returns the working directory. If it was deleted, returns the path in `PWD`. */
function workingDirectory(): string {
  try {
    return process.cwd()
  } catch {
    return process.env.PWD ?? '/'
  }
}

const signals: Signals = {
  listen(listener) {
    const onSignal = (name: NodeJS.Signals) => {
      // After the terminal has closed, writes fail. These errors are ignored.
      if (name === 'SIGHUP')
        for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
      listener(name as TerminationSignal)
    }
    for (const name of terminationSignals) process.on(name, onSignal)
    return () => {
      for (const name of terminationSignals) process.off(name, onSignal)
    }
  },
  withDefaults: withDefaultSignals,
  raise: name => process.kill(process.pid, name),
  onUncaught(listener) {
    process.on('uncaughtException', listener).on('unhandledRejection', listener)
    return () => {
      process.off('uncaughtException', listener).off('unhandledRejection', listener)
    }
  },
  onExit(listener) {
    process.on('exit', listener)
    return () => {
      process.off('exit', listener)
    }
  },
  exit: status => process.exit(status),
}

/** Runs work without signal listeners, which are restored when the work ends or fails. */
export function withDefaultSignals<T>(work: () => T): T {
  const savedListeners = terminationSignals.map(name => [name, process.rawListeners(name)] as const)
  for (const [name] of savedListeners) process.removeAllListeners(name)
  try {
    return work()
  } finally {
    for (const [name, listeners] of savedListeners)
      for (const listener of listeners) process.on(name, listener as NodeJS.SignalsListener)
  }
}

/**
 * Prevents a core dump if a terminal has closed. At exit, Node.js restores the settings of each terminal, and aborts if
 * this fails. This function ends the process with SIGHUP before that.
 */
function preventAbortAtExit(): void {
  const terminals = [0, 1, 2].filter(fd => isatty(fd))
  process.once('exit', () => {
    if (terminals.every(fd => isatty(fd))) return
    process.removeAllListeners('SIGHUP')
    process.kill(process.pid, 'SIGHUP')
  })
}

/** Runs a clipboard program. @throws Error  see {@link Io.copyWith} */
export async function copyWith(
  [program = '', ...args]: readonly string[],
  text: string,
  env: Io['env'],
): Promise<void> {
  const { spawn } = await import('node:child_process')
  const child = spawn(program, args, { env, stdio: ['pipe', 'ignore', 'ignore'] })
  // If a program ends before it has read all input, its exit status reports the problem.
  child.stdin.on('error', () => {})
  child.stdin.end(text)
  const [status] = (await once(child, 'exit')) as [number | null]
  if (status !== 0) throw new Error(`${program} ended with status ${status}`)
}

/**
 * Returns true if the descriptor is the null device. It is also true if the descriptor was closed at startup, because
 * Node.js then opens the null device.
 */
function isNullDevice(fd: number): boolean {
  try {
    const [stream, nullDevice] = [fstatSync(fd), statSync('/dev/null')]
    return stream.isCharacterDevice() && stream.rdev === nullDevice.rdev
  } catch {
    // Windows has no such path.
    return false
  }
}

function writeAll(fd: number, text: string): void {
  const bytes = Buffer.from(text)
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done)
}
