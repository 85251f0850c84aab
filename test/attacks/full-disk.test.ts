import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmdirSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { acquireServerLock } from '../../src/locks/server-lock.ts'
import type { Disk } from '../../src/storage/disk-space.ts'
import { type Base, makeBase } from '../harness/resources.ts'
import { open, type TestRuntime } from '../harness/runtime.ts'
import { changeStoreFile } from '../harness/store-file.ts'
import { waitForDisk } from '../harness/volatile-stores.ts'

const isFull = {
  code: 'control_plane_unavailable',
  message: 'the disk of the data directory is full',
  hint: expect.stringMatching(
    /^Free some space on that disk, then try again\. .* You do not need to restart the server\.$/,
  ),
}

describe('a disk that reports that it is full', () => {
  function disk(): Disk & { free: number; isFull: boolean; asked: number } {
    return {
      free: Number.POSITIVE_INFINITY,
      isFull: false,
      asked: 0,
      async freeBytes() {
        return this.free
      },
      async allocate() {
        this.asked++
        if (this.isFull) throw Object.assign(new Error('no space'), { code: 'EDQUOT' })
      },
    }
  }

  test('is shown by /readyz and /health/details until there is space again, without a restart', async () => {
    const own = disk()
    const wb = await open({ disk: own })
    expect((await wb.send('GET /readyz')).status).toBe(200)
    expect(own.asked).toBe(0)
    Object.assign(own, { free: 0, isFull: true })
    expect(await wb.send('GET /readyz')).toMatchObject({ status: 503, body: { error: isFull } })
    expect((await wb.send('GET /health/details')).body.controlPlane).toMatchObject({
      status: 'degraded',
      detail: isFull.message,
    })
    own.isFull = false
    expect((await wb.send('GET /readyz')).status).toBe(200)
  })
})

/** A small file system if this user can mount one; undefined otherwise, and the tests that need it are skipped. */
const disk = mountDisk('12m')

function mountDisk(size: string): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'wb-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder], { stdio: 'ignore' })
    return folder
  } catch {
    rmdirSync(folder)
    return undefined
  }
}

afterAll(() => {
  if (disk === undefined) return
  execFileSync('umount', ['-l', disk])
  rmdirSync(disk)
})

/** Returns a data directory that is alone on the small disk. */
function dataDirOnDisk(): string {
  const dataDir = join(disk!, 'data')
  onTestFinished(() => {
    for (const name of readdirSync(disk!)) rmSync(join(disk!, name), { recursive: true })
  })
  return dataDir
}

/** Fills the disk, and returns a function that frees the space. */
function fillDisk(): () => void {
  const path = join(disk!, 'ballast')
  writeFileSync(path, '')
  for (const bytes of [65_536, 512])
    try {
      for (;;) appendFileSync(path, Buffer.alloc(bytes, 1))
    } catch {
      // The next smaller block may still fit.
    }
  expect(statfsSync(disk!).bavail).toBe(0)
  return () => rmSync(path, { force: true })
}

const text = (n: number) => `Document ${n}. ${'Some words of its own. '.repeat(300)}`

describe.skipIf(disk === undefined)('a full disk', () => {
  async function openOnFullDisk(): Promise<{
    wb: TestRuntime
    base: Base
    ids: string[]
    empty: () => void
  }> {
    const wb = await open({ dataDir: dataDirOnDisk(), server: true })
    const base = await makeBase(wb)
    const ids: string[] = []
    for (let n = 0; n < 10; n++) ids.push((await base.ingest(text(n))).document.documentId)
    return { wb, base, ids, empty: fillDisk() }
  }

  test('rejects changes with a reason, still answers reads, and accepts changes once there is space', async () => {
    const { wb, base, ids, empty } = await openOnFullDisk()
    const { workspaceId } = base.params
    let last = await wb.send(`POST ${base.path}/ingest`, { text: text(100) })
    for (let n = 101; last.status === 201; n++)
      last = await wb.send(`POST ${base.path}/ingest`, { text: text(n) })
    const refusals = [
      last,
      await wb.send('GET /readyz'),
      await wb.send(`POST ${base.path}/ingest?async=true`, { text: 'later' }),
      await wb.send(`DELETE ${base.path}/documents/${ids[0]}`),
      await wb.send(`DELETE ${base.path}`),
      await wb.send(`DELETE /api/v1/workspaces/${workspaceId}`),
    ]
    for (const { status, body } of refusals)
      expect({ status, ...(body.error as object) }).toMatchObject({
        ...isFull,
        status: 503,
        message: expect.stringContaining(isFull.message),
      })
    const form = new FormData()
    form.append('file', new Blob(['x'.repeat(500_000)]), 'a.txt')
    const url = `http://localhost${base.path}/ingest/file`
    const upload = await wb.runtime.fetch(new Request(url, { method: 'POST', body: form }))
    expect(await upload.json()).toMatchObject({ error: isFull })
    expect(readdirSync(join(wb.dataDir, 'uploads'))).toEqual([])
    expect((await base.search('words')).length).toBeGreaterThan(0)
    expect((await wb.send('GET /healthz')).status).toBe(200)

    empty()
    expect((await wb.send('GET /readyz')).status).toBe(200)
    expect((await wb.send(`DELETE ${base.path}/documents/${ids[0]}`)).status).toBe(204)
    await base.ingest(text(200))
    await base.delete()
  })

  test('allows deleting documents if copying the log into the database makes space', async () => {
    const wb = await open({ dataDir: dataDirOnDisk(), server: true })
    const base = await makeBase(wb)
    const [first, second] = [await base.ingest(text(1).repeat(4)), await base.ingest(text(2))]
    const remove = ({ document }: typeof first) =>
      wb.send(`DELETE ${base.path}/documents/${document.documentId}`)
    // Leaves free pages in the database, so that it can take the log without growing.
    await remove(first)
    changeStoreFile(wb.dataDir, 'PRAGMA wal_checkpoint(PASSIVE)')
    for (let n = 0; n < 20; n++)
      await wb.send(`PATCH ${base.path}/documents/${second.document.documentId}`, { metadata: { n } })
    fillDisk()
    expect((await remove(second)).status).toBe(204)
  })

  test('prevents a server from starting, and the error says that the disk is full', async () => {
    // The copy of a migrated store, with which tests start, would fail with another error.
    waitForDisk()
    const { wb } = await openOnFullDisk()
    await wb.close()
    fillDisk()
    expect(() => acquireServerLock(wb.dataDir)).toThrow(isFull.message)
    const fresh = join(disk!, 'fresh')
    mkdirSync(fresh)
    await expect(open({ dataDir: fresh })).rejects.toMatchObject(isFull)
  })
})
