import {
  linkSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { writePrivateFile } from '../../src/base/private-file.ts'
import { acquireServerLock, findServer, type ServerLock } from '../../src/locks/server-lock.ts'

const umask = process.umask()
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wb-lock-'))
})
afterEach(() => {
  process.umask(umask)
  rmSync(folder, { recursive: true })
})

/** A network address of this machine, if it has one. */
const { address: own } = Object.values(networkInterfaces())
  .flatMap(held => held ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal) ?? { address: '127.0.0.1' }
const announcement = { url: 'http://127.0.0.1:1', pid: 1, startedAt: '2026-01-01T00:00:00.000Z' }

function held(dataDir: string): ServerLock {
  const taken = acquireServerLock(dataDir)
  if (!('lock' in taken)) throw new Error('nobody else can hold it')
  return taken.lock
}

describe('the address file of a server [security rule 6]', () => {
  test('and the lock are private to their owner, regardless of the umask', () => {
    process.umask(0)
    const lock = held(folder)
    lock.announce(announcement)
    for (const name of ['serve.lock', 'serve.json'])
      expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600)
    lock.release()
  })

  test('is ignored if it is a link to the lock of another server', () => {
    const other = join(folder, 'other')
    const here = join(folder, 'here')
    const lock = held(other)
    held(here).release()
    writePrivateFile(join(here, 'serve.json'), JSON.stringify(announcement))
    rmSync(join(here, 'serve.lock'))
    symlinkSync(join(other, 'serve.lock'), join(here, 'serve.lock'))
    expect(findServer(here)).toBeUndefined()
    lock.release()
  })

  test.each([
    [true, {}],
    [true, { url: 'http://[::1]:1' }],
    [true, { url: `http://${own}:1` }],
    [true, { url: 'https://runtime.example' }],
    [false, { url: 'http://runtime.example' }],
    [false, { url: 'http://198.51.100.7:1' }],
    [false, { url: 'file:///etc/passwd' }],
    [false, { url: 'nowhere' }],
    [false, { pid: 0 }],
    [false, { pid: -1 }],
    [false, { pid: 1.5 }],
  ])('is trusted: %s, with the content %j', (isBelieved, said) => {
    const lock = held(folder)
    lock.announce({ ...announcement, ...said })
    expect(findServer(folder) !== undefined).toBe(isBelieved)
    lock.release()
  })
})

describe('a private file', () => {
  const path = () => join(folder, 'kept.json')

  test('is not written through a link that replaced its temporary file', () => {
    const target = join(folder, 'target')
    writeFileSync(target, 'before')
    symlinkSync(target, `${path()}.${process.pid}`)
    writePrivateFile(path(), 'text')
    expect(readFileSync(target, 'utf8')).toBe('before')
    expect(lstatSync(path()).isFile()).toBe(true)
  })

  test('replaces the temporary file of a killed process, even with other permissions or two names', () => {
    const draft = `${path()}.${process.pid}`
    writeFileSync(draft, 'half', { mode: 0o644 })
    linkSync(draft, join(folder, 'second'))
    writePrivateFile(path(), 'text')
    expect(readFileSync(path(), 'utf8')).toBe('text')
    expect(readFileSync(join(folder, 'second'), 'utf8')).toBe('half')
    expect(statSync(path()).mode & 0o777).toBe(0o600)
  })
})
