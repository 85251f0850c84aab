import { execFileSync } from 'node:child_process'
import { appendFileSync, closeSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { chdir, cwd } from 'node:process'
import { Readable } from 'node:stream'
import { describe, expect, onTestFinished, test } from 'vitest'
import { countDocuments } from '../../src/cli/ingest/count-documents.ts'
import {
  type IngestItem,
  type IngestSource,
  nameOf,
  type TextSource,
} from '../../src/cli/ingest/ingest-item.ts'
import { type IngestSelection, readSources, shareWalk, walkSelection } from '../../src/cli/ingest/sources.ts'
import { collect } from '../../src/client/client.ts'
import { limits } from '../../src/contract/limits.ts'
import { scratchTree } from './scratch-tree.ts'

const signal = new AbortController().signal

async function all(paths: string[], rest: Partial<IngestSelection> = {}): Promise<IngestItem[]> {
  const found: IngestItem[] = []
  for await (const one of readSources({ paths, cwd: cwd(), all: false, stdin: undefined, ...rest }))
    found.push(one)
  return found
}

async function read(paths: string[], rest: Partial<IngestSelection> = {}) {
  const found = await all(paths, rest)
  return {
    sources: found.flatMap(one => (one.kind === 'source' ? [one.source] : [])),
    failed: found.flatMap(one => (one.kind === 'failed' ? [one.problem] : [])),
    skipped: found.flatMap(one => (one.kind === 'skipped' ? [one.category] : [])),
  }
}

const names = (all: IngestSource[]) => all.map(nameOf)
const bodyOf = (source: IngestSource | undefined) => (source as TextSource).body

function inFolder(folder: string) {
  const before = cwd()
  chdir(folder)
  onTestFinished(() => chdir(before))
}

describe('names', () => {
  test('names a file of a folder relative to the folder, and reports its path as typed', async () => {
    const root = scratchTree({ 'docs/b.md': 'b', 'docs/deep/a.md': 'a' })
    inFolder(root)
    const { sources } = await read(['docs'])
    expect(names(sources)).toEqual(['b.md', 'deep/a.md'])
    expect(sources.map(({ path }) => path)).toEqual(['docs/b.md', 'docs/deep/a.md'])
  })

  test('names a file by its base name, and a file of a glob from the start of the wildcard', async () => {
    const root = scratchTree({ 'docs/b.md': 'b', 'docs/deep/a.md': 'a', 'docs/c.txt': 'c' })
    expect(names((await read([join(root, 'docs/b.md')])).sources)).toEqual(['b.md'])
    expect(names((await read([join(root, 'docs/**/*.md')])).sources)).toEqual(['b.md', 'deep/a.md'])
  })

  test('keeps files of the same name in two arguments apart, and takes a repeated file once', async () => {
    inFolder(scratchTree({ 'a/README.md': 'a', 'b/README.md': 'b' }))
    const { sources } = await read(['a', 'b', 'a/README.md'])
    expect(names(sources)).toEqual(['README.md', 'b/README.md'])
  })

  test('accepts a name with a newline and an escape sequence', async () => {
    const root = scratchTree({ 'odd\n\u001b[31mname.md': 'odd' })
    expect(names((await read([root])).sources)).toEqual(['odd\n\u001b[31mname.md'])
  })

  test('treats an existing file whose name looks like a glob as that file', async () => {
    const root = scratchTree({ 'a[1].md': 'literal', 'a1.md': 'other' })
    expect((await read([join(root, 'a[1].md')])).sources.map(source => bodyOf(source).text)).toEqual([
      'literal',
    ])
  })
})

describe('ignored files', () => {
  const files = {
    '.git/config': 'x',
    '.hidden/a.md': 'hidden',
    '.env.md': 'hidden',
    '.gitignore': 'dist/\n*.log\n!keep.log\n',
    'dist/a.md': 'built',
    'a.log': 'log',
    'keep.log': 'kept',
    'sub/.gitignore': '/local.md\n!b.log\n',
    'sub/local.md': 'local',
    'sub/b.log': 'kept by the nearer rule',
    'sub/deep/local.md': 'not at the root of the rule',
    'a.md': 'text',
  }

  test('skips hidden files and files that match the nearest .gitignore', async () => {
    const expected = ['a.md', 'keep.log', 'sub/b.log', 'sub/deep/local.md']
    const root = scratchTree(files)
    expect(names((await read([root])).sources)).toEqual(expected)
    expect(names((await read([`${root}/**`])).sources).sort()).toEqual(expected)
  })

  test('includes everything except .git with --all', async () => {
    const root = scratchTree(files)
    const everything = names((await read([root], { all: true })).sources)
    expect(everything).toContain('.hidden/a.md')
    expect(everything).toContain('dist/a.md')
    expect(everything.some(name => name.startsWith('.git/'))).toBe(false)
  })

  test('applies rules of the repository root in a subfolder, unless the subfolder is named and ignored', async () => {
    const root = scratchTree({ ...files, 'sub/deep/a.log': 'log' })
    expect(names((await read([join(root, 'sub/deep')])).sources)).toEqual(['local.md'])
    expect(names((await read([join(root, 'dist')])).sources)).toEqual(['a.md'])
  })

  test('takes a named file even if it is hidden or ignored', async () => {
    const root = scratchTree(files)
    const { sources } = await read([join(root, '.env.md'), join(root, 'a.log')])
    expect(names(sources)).toEqual(['.env.md', 'a.log'])
  })
})

describe('unreadable files', () => {
  test('skips binaries and other formats in a folder, and fails for those that are named', async () => {
    const root = scratchTree({
      'a.png': 'x',
      'b.PNG': 'x',
      program: Buffer.from([1, 0, 2]),
      LICENSE: 'MIT',
      'e.md': ' \n',
    })
    const walked = await read([root])
    expect(names(walked.sources)).toEqual(['LICENSE'])
    expect(walked.skipped.sort()).toEqual(['.png', '.png', 'binary files', 'empty files'])
    const named = await read([join(root, 'a.png'), join(root, 'e.md')])
    expect(named.failed.map(({ code }) => code)).toEqual(['unsupported_file_type', 'empty_file'])
  })

  test('sends text with NUL bytes or invalid UTF-8 as a file, because the runtime recognizes encodings', async () => {
    const root = scratchTree({
      'a.log': Buffer.from([65, 0, 66]),
      'b.txt': Buffer.from([0xff, 0xfe, 65]),
      'c.md': 'ok',
    })
    const { failed, sources } = await read([root])
    expect(failed).toEqual([])
    expect(sources.map(source => ('file' in source ? source.file : nameOf(source)))).toEqual([
      { content: join(root, 'a.log'), follow: false, name: 'a.log', type: 'text/plain', sizeBytes: 3 },
      { content: join(root, 'b.txt'), follow: false, name: 'b.txt', type: 'text/plain', sizeBytes: 3 },
      'c.md',
    ])
  })

  test('accepts a text with exactly the maximum number of characters, and rejects one more, regardless of bytes', async () => {
    const root = scratchTree({})
    const write = (name: string, unit: string, count: number) => {
      const file = openSync(join(root, name), 'w')
      const block = unit.repeat(1_000_000)
      for (let remaining = count; remaining > 0; remaining -= 1_000_000)
        writeSync(file, remaining >= 1_000_000 ? block : unit.repeat(remaining))
      closeSync(file)
    }
    write('n.log', 'x', limits.ingestTextChars)
    write('over.log', 'x', limits.ingestTextChars + 1)
    write('wide.log', '線', 7_000_000)
    write('huge.log', 'x', 2 * limits.ingestTextChars)
    const { sources, failed } = await read([root])
    expect(names(sources)).toEqual(['n.log', 'wide.log'])
    expect(failed.map(({ path, code }) => [path.slice(root.length + 1), code])).toEqual([
      ['huge.log', 'payload_too_large'],
      ['over.log', 'payload_too_large'],
    ])
  })

  test('does not follow outside, circular or dangling links and pipes in a folder, and continues', async () => {
    const outside = scratchTree({ 'secret.md': 'secret' })
    const root = scratchTree({
      'a.md': 'a',
      loop: { linkTo: '.' },
      'deep/up': { linkTo: '..' },
      out: { linkTo: outside },
      'out.md': { linkTo: join(outside, 'secret.md') },
      'gone.md': { linkTo: 'nowhere' },
      'self.md': { linkTo: 'self.md' },
    })
    execFileSync('mkfifo', [join(root, 'pipe.md')])
    const { sources, skipped, failed } = await read([root])
    expect(names(sources)).toEqual(['a.md'])
    expect(failed).toEqual([])
    expect(skipped.filter(as => as === 'symbolic links')).toHaveLength(6)
    expect(skipped.filter(as => as === 'special files')).toHaveLength(1)
    expect(names((await read([`${root}/**/*.md`])).sources)).toEqual(['a.md'])
  })

  test('follows a named link, and rejects a named pipe or socket without waiting', async () => {
    const outside = scratchTree({ 'secret.md': 'mine' })
    const root = scratchTree({
      'link.md': { linkTo: join(outside, 'secret.md') },
      'gone.md': { linkTo: 'nowhere' },
    })
    execFileSync('mkfifo', [join(root, 'pipe.md')])
    const { sources, failed } = await read(
      ['link.md', 'pipe.md', 'gone.md', 'absent.md', 'no*match'].map(n => join(root, n)),
    )
    expect(names(sources)).toEqual(['link.md'])
    expect(failed.map(({ code }) => code)).toEqual(['unsupported_file_type', 'ENOENT', 'ENOENT', 'ENOENT'])
  })

  test('ignores folders that are named like a file type or .gitignore', async () => {
    const root = scratchTree({ 'a.md/inner.txt': 'inner', '.gitignore/x': 'x' })
    mkdirSync(join(root, 'empty.jsonl'))
    expect(names((await read([root])).sources)).toEqual(['a.md/inner.txt'])
  })
})

describe('documents', () => {
  test('takes the title of Markdown from front matter, else from the first heading outside code', async () => {
    const root = scratchTree({
      'a.md': '```\n# not this\n```\n\n## The *real* [title](x.html) ##\n# later\n',
      'b.md': '---\nlang: en\ntitle: "From the front"\n---\n# Heading\n',
      'c.md': 'no heading',
      'd.md': 'Setext\n======\n',
      'e.txt': '# not markdown\n',
      'f.md': '---\ntitle: Keys: an overview\n---\n',
    })
    const { sources } = await read([root])
    expect(sources.map(source => bodyOf(source).metadata?.title)).toEqual([
      'The real title',
      'From the front',
      undefined,
      'Setext',
      undefined,
      'Keys: an overview',
    ])
  })

  test('takes metadata of Markdown from front matter, without fields of the runtime', async () => {
    const fields = [
      'lang: en',
      'year: 2026',
      'draft: false',
      'date: 2026-03-01',
      'tags: [security, keys, 7]',
      'authors: [{name: Ada}]',
      'empty:',
      `long: ${'x'.repeat(600)}`,
      'visible_to: ["*"]',
      'fileHash: x',
      '"a b": 1',
    ]
    const root = scratchTree({
      'a.md': `---\n${fields.join('\n')}\n---\n# Heading\n`,
      'b.md': '---\nlang: *x\n---\n',
      'c.md': '---\n- lang\n---\n',
    })
    expect((await read([root])).sources.map(source => bodyOf(source).metadata)).toEqual([
      {
        lang: 'en',
        year: 2026,
        draft: false,
        date: '2026-03-01',
        tags: 'security, keys, 7',
        long: 'x'.repeat(500),
        title: 'Heading',
      },
      {},
      {},
    ])
  })

  test('removes a byte order mark, and reports type and size', async () => {
    const root = scratchTree({ 'a.md': '\ufeffhi ä' })
    expect(bodyOf((await read([root])).sources[0])).toMatchObject({
      text: 'hi ä',
      sourceFilename: 'a.md',
      fileType: 'text/markdown',
      fileSize: 8,
    })
  })

  test('splits lines in BEIR form into documents with separate names, and skips a line without title and text', async () => {
    const lines = [
      { _id: 'd1', title: 'One', text: 'first' },
      { _id: 'd2', title: '', text: 'second', metadata: { year: 1960 } },
      { _id: 'd3', title: '', text: '' },
      { _id: 4, title: 'Title alone' },
      { text: 'no id' },
    ]
    const root = scratchTree({
      'c.jsonl': `${lines.map(line => JSON.stringify(line)).join('\n')}\n\nnot json`,
    })
    const { sources, skipped, failed } = await read([root])
    expect(sources.map(bodyOf)).toMatchObject([
      { sourceDocId: 'd1', sourceFilename: 'c.jsonl#d1', text: 'first', metadata: { title: 'One' } },
      { sourceDocId: 'd2', sourceFilename: 'c.jsonl#d2', text: 'second', metadata: { year: 1960 } },
      {
        sourceDocId: '4',
        sourceFilename: 'c.jsonl#4',
        text: 'Title alone',
        metadata: { title: 'Title alone' },
      },
      { sourceDocId: null, sourceFilename: 'c.jsonl#5', text: 'no id' },
    ])
    expect(skipped).toEqual(['lines without title and text'])
    expect(failed).toEqual([
      { path: `${join(root, 'c.jsonl')}:7`, code: 'extraction_failed', message: expect.any(String) },
    ])
    const selection = { paths: [root], cwd: root, all: false, stdin: undefined }
    expect(await countDocuments(selection, walkSelection(selection), signal)).toBe(6)
  })

  test('counts and reads the files in one walk', async () => {
    const root = scratchTree({ 'a.md': 'a', 'b.md': 'b', 'c/d.md': 'd' })
    const selection = { paths: [root], cwd: root, all: false, stdin: undefined }
    let steps = 0
    async function* countingWalk() {
      for await (const met of walkSelection(selection)) {
        steps++
        yield met
      }
    }
    const files = shareWalk(countingWalk())
    const [size, found] = await Promise.all([
      countDocuments(selection, files, signal),
      collect(readSources(selection, files)),
    ])
    expect([size, found.length, steps]).toEqual([3, 3, 3])
  })

  test('treats a .jsonl file of another form as one text, and rejects one with invalid lines', async () => {
    const root = scratchTree({ 'log.jsonl': '{"level":"info"}\n{"level":"warn"}\n' })
    expect(names((await read([root])).sources)).toEqual(['log.jsonl'])
    appendFileSync(join(root, 'bad.jsonl'), `{"text":"ok"}\n${'{broken\n'.repeat(500)}`)
    const { failed } = await read([join(root, 'bad.jsonl')])
    expect(failed).toHaveLength(101)
    expect(failed.at(-1)!.message).toContain('stopped after')
  })

  test('reassembles a line that is split over several reads', async () => {
    const bytes = Buffer.from(JSON.stringify({ _id: 'ä', text: 'über' }))
    const stream = Readable.from([...bytes].map(byte => Buffer.from([byte])))
    const { sources } = await read(['-'], { stdin: { name: 'x.jsonl', stream } })
    expect(bodyOf(sources[0])).toMatchObject({ sourceDocId: 'ä', text: 'über' })
  })

  test('gives text from stdin the given name', async () => {
    const { sources } = await read(['-'], {
      stdin: { name: 'notes.md', stream: Readable.from([Buffer.from('# Notes\nhi')]) },
    })
    expect(bodyOf(sources[0])).toMatchObject({
      sourceFilename: 'notes.md',
      text: '# Notes\nhi',
      metadata: { title: 'Notes' },
    })
  })

  test('reports empty text from stdin as failed', async () => {
    const { sources, failed, skipped } = await read(['-'], {
      stdin: { name: 'a.md', stream: Readable.from([]) },
    })
    expect([sources, skipped]).toEqual([[], []])
    expect(failed).toEqual([{ path: 'a.md', code: 'empty_file', message: 'it contains no text' }])
  })
})
