import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { packTar, type TarEntry } from 'modern-tar'
import { describe, expect, test } from 'vitest'
import { safePath, unpackArchive } from '../../../src/cli/web-sources/archive.ts'
import { scratchTree } from '../scratch-tree.ts'

const { signal } = new AbortController()

function file(name: string, body: string): TarEntry {
  return { header: { name, size: Buffer.byteLength(body), type: 'file' }, body }
}

async function unpack(entries: TarEntry[], options: { compress?: boolean; bytesMax?: number } = {}) {
  const root = scratchTree({})
  const archive = join(root, 'a.tar')
  const bytes = await packTar(entries)
  writeFileSync(archive, options.compress ? gzipSync(bytes) : bytes)
  const folder = join(root, 'unpacked')
  const content = await unpackArchive(archive, folder, { signal, ...options })
  return { root, folder, content, names: readdirSync(content, { recursive: true, encoding: 'utf8' }).sort() }
}

test.each([false, true])('unpacks files (gzip: %s)', async compress => {
  const { content, names } = await unpack([file('a.md', 'alpha'), file('sub/b.md', 'beta')], { compress })
  expect(names).toEqual(['a.md', 'sub', 'sub/b.md'])
  expect(readFileSync(join(content, 'sub/b.md'), 'utf8')).toBe('beta')
})

test('leaves out the only folder at the top', async () => {
  const { folder, content, names } = await unpack([file('project-1.0/a.md', 'alpha')])
  expect(content).toBe(join(folder, 'project-1.0'))
  expect(names).toEqual(['a.md'])
})

describe('a malicious archive', () => {
  test('writes nothing outside of the folder', async () => {
    const { root, names } = await unpack([
      file('../escaped.md', 'x'),
      file('sub/../../escaped.md', 'x'),
      file(join('/tmp', 'wb-escaped-test.md'), 'x'),
      file('a.md', 'alpha'),
    ])
    expect(names).toEqual(['a.md'])
    expect(readdirSync(root).sort()).toEqual(['a.tar', 'unpacked'])
    expect(existsSync('/tmp/wb-escaped-test.md')).toBe(false)
  })

  test('writes nothing through links', async () => {
    const link = (type: 'symlink' | 'link', name: string, linkname: string): TarEntry => ({
      header: { name, size: 0, type, linkname },
    })
    const { root, names } = await unpack([
      link('symlink', 'out', '..'),
      file('out/escaped.md', 'x'),
      link('symlink', 'passwords', '/etc/passwd'),
      link('link', 'hard', '/etc/passwd'),
      { header: { name: 'pipe', size: 0, type: 'fifo' } },
    ])
    expect(names).toEqual(['escaped.md'])
    expect(readdirSync(root).sort()).toEqual(['a.tar', 'unpacked'])
  })

  test('fails if its files are too large', async () => {
    const zeros = file('zeros.txt', '0'.repeat(1_000_000))
    await expect(unpack([zeros], { compress: true, bytesMax: 100_000 })).rejects.toMatchObject({
      code: 'payload_too_large',
    })
  })

  test.each(['not an archive', gzipSync('not an archive'), gzipSync('x'.repeat(2_000)).subarray(0, 20)])(
    'fails if it is damaged (%#)',
    async bytes => {
      const root = scratchTree({ 'a.tar': bytes })
      await expect(
        unpackArchive(join(root, 'a.tar'), join(root, 'unpacked'), { signal }),
      ).rejects.toMatchObject({ code: 'extraction_failed' })
    },
  )
})

test('an error of the system is not reported as damage', async () => {
  const root = scratchTree({})
  await expect(unpackArchive(root, join(root, 'unpacked'), { signal })).rejects.toMatchObject({
    code: 'fetch_failed',
    message: expect.stringContaining('EISDIR'),
  })
})

test.each(['../a', '/a', 'a/../b', 'a\\..\\b', 'c:a', 'a\0b', '', '.', 'x/'.repeat(65), 'x'.repeat(1_001)])(
  'rejects the path %j',
  name => {
    expect(safePath(name)).toBeUndefined()
  },
)
