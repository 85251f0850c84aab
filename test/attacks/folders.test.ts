import { truncateSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { splitLines } from '../../src/base/split-lines.ts'
import { type IngestSelection, readSources } from '../../src/cli/ingest/sources.ts'
import { scratchTree } from '../cli/scratch-tree.ts'

async function readFolder(folder: string) {
  const selection: IngestSelection = { paths: [folder], cwd: folder, stdin: undefined, all: false }
  const found = []
  for await (const one of readSources(selection)) found.push(one)
  return found
}

test.each(['hole.txt', 'hole.jsonl', 'hole'])(
  'the 200 GB file %s is reported without being read to its end',
  async name => {
    const root = scratchTree({ [name]: '', 'ok.txt': 'fine' })
    truncateSync(join(root, name), 200e9)
    const problem = { path: join(root, name), code: 'payload_too_large', message: expect.any(String) }
    expect(await readFolder(root)).toEqual([
      { kind: 'failed', problem },
      { kind: 'source', source: expect.objectContaining({ path: join(root, 'ok.txt') }) },
    ])
  },
)

test('an overlong line is reported once before its end, and the following lines are read', async () => {
  let sent = 0
  async function* parts() {
    yield Buffer.from('a\n')
    for (; sent < 100; sent++) yield Buffer.from('long')
    yield Buffer.from('\nb\n\nlonger\nc')
  }
  const seen: [number, string | undefined, number][] = []
  for await (const bytes of splitLines(parts(), { bytesMax: 5 }))
    seen.push([seen.length + 1, bytes && Buffer.from(bytes).toString(), sent])
  expect(seen).toEqual([
    [1, 'a', 0],
    [2, undefined, 1],
    [3, 'b', 100],
    [4, '', 100],
    [5, undefined, 100],
    [6, 'c', 100],
  ])
})
