import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createFileKeychain } from '../../src/keychain/file-keychain.ts'
import { programPath } from '../harness/program.ts'

function createScratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "wb-it's a file-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'state', 'credentials')
}

/** Returns the path of the only file in a folder. */
function onlyFile(folder: string): string {
  const [name, ...others] = readdirSync(folder)
  expect(others).toEqual([])
  return join(folder, name!)
}

test('stores an entry in a private file and folder', async () => {
  const folder = createScratchFolder()
  await createFileKeychain(folder).setPassword('workbase', 'one', 'kept')
  expect(statSync(folder).mode & 0o777).toBe(0o700)
  expect(statSync(onlyFile(folder)).mode & 0o777).toBe(0o600)
})

test('rejects files that others can open, until the user runs the suggested command', async () => {
  const folder = createScratchFolder()
  const keychain = createFileKeychain(folder)
  await keychain.setPassword('workbase', 'one', 'kept')
  for (const [path, mode] of [
    [onlyFile(folder), 0o640],
    [folder, 0o755],
  ] as const) {
    chmodSync(path, mode)
    const refusal = await keychain.getPassword('workbase', 'one').catch(error => error)
    expect(refusal).toMatchObject({ name: 'KeychainUnavailable', driver: 'file', reason: 'unavailable' })
    expect(refusal.message).toContain(path)
    expect(await keychain.findCredentials('workbase').catch(error => error)).toEqual(refusal)
    expect(spawnSync('sh', ['-c', refusal.hint]).status).toBe(0)
    expect(await keychain.getPassword('workbase', 'one')).toBe('kept')
  }
  chmodSync(folder, 0o755)
  await expect(keychain.setPassword('workbase', 'one', 'new')).rejects.toThrow('other users can open it')
})

test('reports a folder that cannot be created', async () => {
  const folder = createScratchFolder()
  await createFileKeychain(folder).setPassword('workbase', 'one', 'kept')
  const inAFile = createFileKeychain(join(onlyFile(folder), 'credentials'))
  const refusal = await inAFile.setPassword('workbase', 'one', 'kept').catch(error => error)
  expect(refusal).toMatchObject({ driver: 'file', reason: 'unavailable' })
  expect(refusal.message).toMatch(/cannot be used: EEXIST/)
})

test('ignores a file with invalid content', async () => {
  const folder = createScratchFolder()
  const keychain = createFileKeychain(folder)
  await keychain.setPassword('workbase', 'one', 'kept')
  for (const text of ['', '{"service":"workbase"}', 'null', '[]']) {
    writeFileSync(onlyFile(folder), text)
    expect(await keychain.getPassword('workbase', 'one')).toBeNull()
    expect(await keychain.findCredentials('workbase')).toEqual([])
  }
})

test('removes temporary files of ended processes with their entry, and keeps those of running ones', async () => {
  const folder = createScratchFolder()
  const keychain = createFileKeychain(folder)
  await keychain.setPassword('workbase', 'one', 'kept')
  const path = onlyFile(folder)
  const { pid } = spawnSync(process.execPath, ['--version'])
  for (const writer of [pid, process.ppid]) writeFileSync(`${path}.${writer}`, 'secret', { mode: 0o600 })
  expect(await keychain.findCredentials('workbase')).toHaveLength(1)
  expect(await keychain.deletePassword('workbase', 'one')).toBe(true)
  expect(onlyFile(folder)).toBe(`${path}.${process.ppid}`)
})

test('processes that write concurrently lose no entries', async () => {
  const folder = createScratchFolder()
  const writers = ['a', 'b', 'c'].map(name =>
    spawn(process.execPath, [programPath('keychain/write'), folder, name], { stdio: 'inherit' }),
  )
  const ends = await Promise.all(writers.map(writer => once(writer, 'exit')))
  expect(ends.map(([status]) => status)).toEqual([0, 0, 0])
  const found = await createFileKeychain(folder).findCredentials('workbase')
  expect(found).toHaveLength(61)
  expect(found.find(({ account }) => account === 'shared')!.password).toMatch(/^(a+|b+|c+)$/)
  expect(readdirSync(folder).filter(name => !name.endsWith('.json'))).toEqual([])
  expect(readFileSync(join(folder, readdirSync(folder)[0]!), 'utf8')).toMatch(/\n$/)
})
