import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, vi } from 'vitest'
import type { KeychainDriver } from '../../src/keychain/keychain.ts'
import { hasPackage, hasProgram } from '../harness/installed.ts'

const hasSecretService = ['dbus-daemon', 'dbus-send', 'gnome-keyring-daemon'].every(hasProgram)

/** Returns true if this machine has a Secret Service for tests, and the package of the driver. */
export function canTest(driver: KeychainDriver): boolean {
  return hasSecretService && (driver !== 'keytar' || hasPackage('keytar'))
}

/** Starts no services on demand, so each test has only those that it started. */
const busConfig = (
  socket: string,
) => `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path=${socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
`

const service = '/org/freedesktop/secrets'
const login = `${service}/collection/login`

/** An isolated login session in a folder that is removed after the test. */
export interface Session {
  readonly environment: Record<string, string>
  readonly folder: string
}

/** Creates a session without a bus. */
export function createBareSession(): Session {
  const folder = mkdtempSync(join(tmpdir(), 'wb-keychain-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const runtimeDir = join(folder, 'run')
  mkdirSync(runtimeDir, { mode: 0o700 })
  return { folder, environment: { PATH: process.env.PATH!, HOME: folder, XDG_RUNTIME_DIR: runtimeDir } }
}

/** Creates a session with a bus and no services. */
export async function startBusSession(): Promise<Session> {
  const bare = createBareSession()
  const config = join(bare.folder, 'bus.conf')
  writeFileSync(config, busConfig(join(bare.folder, 'bus')))
  const bus = spawn('dbus-daemon', [`--config-file=${config}`, '--nofork', '--print-address=1'], {
    env: bare.environment,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  endWithTest(bus)
  const [address] = (await once(bus.stdout!, 'data')) as [Buffer]
  return {
    ...bare,
    environment: { ...bare.environment, DBUS_SESSION_BUS_ADDRESS: address.toString().trim() },
  }
}

export interface SecretService extends Session {
  /** Locks the keychain, without a prompt to unlock it. */
  lock(): void
  /** Stops all responses until `resume`. */
  stall(): void
  resume(): void
}

/** Creates a session with GNOME's Secret Service, unlocked. */
export async function startSecretService(): Promise<SecretService> {
  const session = await startBusSession()
  const keyring = spawn('gnome-keyring-daemon', ['--foreground', '--unlock', '--components=secrets'], {
    env: session.environment,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  endWithTest(keyring)
  keyring.stdin.end('password')
  await vi.waitFor(() => expect(isUnlocked()).toBe(true), { timeout: 10_000, interval: 20 })

  function send(path: string, ...call: string[]): string {
    const args = ['--session', '--print-reply=literal', '--dest=org.freedesktop.secrets', path, ...call]
    return execFileSync('dbus-send', args, { env: session.environment, stdio: 'pipe' }).toString()
  }

  function isUnlocked(): boolean {
    const collection = 'string:org.freedesktop.Secret.Collection'
    return send(login, 'org.freedesktop.DBus.Properties.Get', collection, 'string:Locked').includes('false')
  }

  return {
    ...session,
    lock: () => void send(service, 'org.freedesktop.Secret.Service.Lock', `array:objpath:${login}`),
    stall: () => keyring.kill('SIGSTOP'),
    resume: () => keyring.kill('SIGCONT'),
  }
}

function endWithTest(child: ChildProcess): void {
  onTestFinished(async () => {
    const ended = once(child, 'exit')
    if (child.kill('SIGKILL')) await ended
  })
}
