import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, relative, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { pdf, wordFile } from '../formats/files.ts'
import { cranfield } from '../harness/beir.ts'
import { type CommandResult, createSandbox, runProgram, type Sandbox, serveWithApiKeys } from './sandbox.ts'
import { runInFakeTerminal, runInTerminal, stripSequences } from './terminal.ts'

const corpus = join(cranfield, 'corpus.jsonl')
const emptySummary = { added: 0, replaced: 0, unchanged: 0, duplicates: 0, skipped: 0, failed: [] }

function summary({ stdout }: CommandResult) {
  return JSON.parse(stdout) as typeof emptySummary & {
    sameText: unknown[]
    skippedAs: Record<string, number>
  }
}

function writeFiles(sandbox: Sandbox, contents: Record<string, string | Buffer>): string {
  const root = join(sandbox.home, 'tree')
  for (const [name, content] of Object.entries(contents)) {
    mkdirSync(join(root, name, '..'), { recursive: true })
    writeFileSync(join(root, name), content)
  }
  return root
}

describe('a missing knowledge base', () => {
  test('is not created in a pipe without --create, and the error suggests the flag', async () => {
    const sandbox = createSandbox()
    const tree = writeFiles(sandbox, { 'a.md': 'a' })
    const refused = await sandbox.wb(['kb', 'ingest', 'papers', tree])
    expect(refused).toMatchObject({ status: 4, stdout: '' })
    expect(refused.stderr).toContain('--create')
    expect((await sandbox.wb(['workspaces', 'list'])).stdout).toBe('')
    const mistyped = await sandbox.wb(['kb', 'ingest', 'papers', join(tree, 'absent'), '--create'])
    expect(mistyped).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('no knowledge base was created'),
    })
    expect((await sandbox.wb(['kb', 'list', '--json'])).stdout).not.toContain('papers')
    expect(await sandbox.wb(['kb', 'ingest', 'papers', tree, '--create'])).toMatchObject({ status: 0 })
  })

  test('is created after a confirmation in a terminal', async () => {
    const sandbox = createSandbox()
    const tree = writeFiles(sandbox, { 'a.md': 'a' })
    const answer = (text: string) => (text.includes('Create it?') ? 'y\r' : undefined)
    const screen = await runInTerminal(sandbox, ['kb', 'ingest', 'papers', tree], { answer })
    expect(screen.status).toBe(0)
    expect(stripSequences(screen.text)).toMatch(/✓ 1 added {3}in \d+\.\d s\n {2}wb kb search papers "…"\n/)
  })
})

describe('repeated ingestion', () => {
  test('skips unchanged files, replaces changed files, and names the existing document of a copy', async () => {
    const sandbox = createSandbox()
    const tree = writeFiles(sandbox, { 'a.md': '# A\nfirst', 'b.md': 'second', 'deep/c.txt': 'third' })
    const ingest = async () =>
      summary(await sandbox.wb(['kb', 'ingest', 'papers', tree, '--create', '--json']))
    expect(await ingest()).toMatchObject({ ...emptySummary, added: 3 })
    expect(await ingest()).toMatchObject({ ...emptySummary, unchanged: 3 })
    writeFileSync(join(tree, 'b.md'), 'second, changed')
    writeFileSync(join(tree, 'z.md'), 'third')
    expect(await ingest()).toMatchObject({
      ...emptySummary,
      replaced: 1,
      unchanged: 2,
      duplicates: 1,
      sameText: [{ path: join(tree, 'z.md'), sameAs: 'deep/c.txt' }],
    })
    const { stderr } = await sandbox.wb(['kb', 'ingest', 'papers', tree])
    expect(stderr).toContain('z.md   same text as deep/c.txt')
    const listed = JSON.parse((await sandbox.wb(['documents', 'list', '--json'])).stdout) as {
      sourceFilename: string
    }[]
    expect(listed.map(row => row.sourceFilename).sort()).toEqual(['a.md', 'b.md', 'deep/c.txt'])
  })

  test('handles lines of a BEIR file separately: replaces those with a new text or title, and keeps the others', async () => {
    const sandbox = createSandbox()
    const line = (id: string, title: string, text: string) => `${JSON.stringify({ _id: id, title, text })}\n`
    const tree = writeFiles(sandbox, {
      'c.jsonl': line('1', 'one', 'first') + line('2', 'two', 'second') + line('3', 'three', 'third'),
    })
    const ingest = async () =>
      summary(await sandbox.wb(['kb', 'ingest', 'papers', tree, '--create', '--json']))
    expect(await ingest()).toMatchObject({ ...emptySummary, added: 3 })
    writeFileSync(
      join(tree, 'c.jsonl'),
      line('1', 'one', 'first, changed') +
        line('2', 'TWO', 'second') +
        line('3', 'three', 'third') +
        line('4', '', ''),
    )
    expect(await ingest()).toMatchObject({ ...emptySummary, replaced: 2, unchanged: 1, skipped: 1 })
    const listed = JSON.parse((await sandbox.wb(['documents', 'list', '--json'])).stdout) as {
      sourceDocId: string
      metadata: { title: string }
    }[]
    expect(listed.map(row => [row.sourceDocId, row.metadata.title]).sort()).toEqual([
      ['1', 'one'],
      ['2', 'TWO'],
      ['3', 'three'],
    ])
  })
})

test('handles a tree with binaries, circular links, a 40 MB log, unusual names and unreadable files', async () => {
  const sandbox = createSandbox()
  const tree = writeFiles(sandbox, {
    'README.md': '# Project\nWhat it is.',
    'src/main.ts': 'export const answer = 42\n',
    'logo.png': Buffer.from([0x89, 0x50, 0x4e, 0x47, 0]),
    'core.log': Buffer.from([65, 0, 66]),
    'paper.pdf': '%PDF-1.7',
    'line\nbreak \u001b[31m.md': 'odd name',
    'node_modules/x/index.js': 'ignored',
    '.gitignore': 'node_modules/\n',
    '.git/HEAD': 'ref',
  })
  const log = openSync(join(tree, 'huge.log'), 'w')
  for (let megabytes = 0; megabytes < 40; megabytes++) writeSync(log, 'x'.repeat(1_000_000))
  closeSync(log)
  symlinkSync('..', join(tree, 'src/loop'))
  symlinkSync('nowhere', join(tree, 'dangling.md'))
  execFileSync('mkfifo', [join(tree, 'pipe.md')])
  const args = ['kb', 'ingest', 'repo', tree, join(tree, 'absent.md'), '--create']
  const ended = await sandbox.wb([...args, '--json'])
  expect(ended.status).toBe(1)
  expect(summary(ended)).toMatchObject({
    added: 3,
    skipped: 4,
    skippedAs: { '.png': 1, 'symbolic links': 2, 'special files': 1 },
  })
  const failures = JSON.parse(ended.stdout).failed as { path: string; code: string }[]
  expect(failures.map(({ path, code }) => `${relative(tree, path)} ${code}`).sort()).toEqual([
    'absent.md ENOENT',
    'core.log extraction_failed',
    'huge.log payload_too_large',
    'paper.pdf extraction_failed',
  ])
  const again = await sandbox.wb(args)
  expect(again.status).toBe(1)
  expect(again.stdout).toBe('added\t0\nreplaced\t0\nunchanged\t3\nduplicates\t0\nskipped\t4\nfailed\t4\n')
  expect(again.stderr).toMatch(
    / {2}– skipped 2 symbolic links: .*\/dangling\.md, .*\/src\/loop \(not followed\)\n/,
  )
  expect(again.stderr).toMatch(/ {2}– skipped 1 \.png: .*\.png \(not supported\)\n/)
  expect(again.stderr).toMatch(
    / {2}✗ .*paper\.pdf {3}the file is a damaged PDF\. Check that .* \(extraction_failed\)\n/,
  )
  const screen = stripSequences((await runInFakeTerminal(sandbox, args)).text)
  expect(screen).toContain('  ✓ 3 unchanged   4 skipped   4 failed   in ')
  expect(screen).toMatch(/it has more than 20,000,000\s+characters;\s+split\s+it\s+\(payload_too_large\)/)
})

test('strips escape sequences from a file name [security rule 16]', async () => {
  const sandbox = createSandbox()
  const tree = writeFiles(sandbox, { 'bad\u001b]0;owned\u0007\n.log': Buffer.from([0]) })
  const { text } = await runInFakeTerminal(sandbox, ['kb', 'ingest', 'repo', tree, '--create'])
  expect(text).not.toContain('\u001b]0;owned')
  expect(stripSequences(text)).toMatch(/✗ .*bad \.log {3}\S/)
})

test('an unknown workspace is an error that does not suggest --create, and nothing is created', async () => {
  const sandbox = createSandbox()
  const tree = writeFiles(sandbox, { 'a.md': 'text' })
  for (const more of [[], ['--create']]) {
    const { status, stderr } = await sandbox.wb(['kb', 'ingest', 'repo', tree, '-w', 'absent', ...more])
    expect(status).toBe(4)
    expect(stderr).toContain('No workspace is named "absent"')
    expect(stderr).not.toContain('--create')
  }
  expect((await sandbox.wb(['workspaces', 'list', '--json'])).stdout).toBe('[]\n')
})

describe('standard input', () => {
  test('becomes a document with the given name', async () => {
    const sandbox = createSandbox()
    const ended = await sandbox.wb(
      ['kb', 'ingest', 'papers', '-', '--name', 'notes.md', '--create', '--json'],
      {
        input: '# Notes\nhello',
      },
    )
    expect(summary(ended)).toMatchObject({ ...emptySummary, added: 1 })
    const [document] = JSON.parse((await sandbox.wb(['documents', 'list', '--json'])).stdout) as object[]
    expect(document).toMatchObject({ sourceFilename: 'notes.md', metadata: { title: 'Notes' } })
  })

  test('without a name is a usage error, and nothing is created', async () => {
    const sandbox = createSandbox()
    const ended = await sandbox.wb(['kb', 'ingest', 'papers', '-', '--create'], { input: 'x' })
    expect(ended.status).toBe(2)
    expect(ended.stderr).toContain('--name')
    expect((await sandbox.wb(['workspaces', 'list'])).stdout).toBe('')
  })
})

test.each([
  ['in a batch', 'batch'],
  ['alone', 'ingest'],
])('shows upload progress of a large text in a terminal: %s', async (_what, route) => {
  const sandbox = createSandbox()
  const tree = writeFiles(sandbox, {
    'a.md': 'small',
    'novel.txt': 'a line of it\n'.repeat(600_000),
    'z.md': 'small',
  })
  const going = /novel\.txt {2}█+░+ {2}\d\.\d\/8\.4 MB {2}\d+\.\d MB\/s {2}\d\d:\d\d left/
  let goOn = () => {}
  const isSeen = new Promise<void>(done => {
    goOn = done
  })
  const url = await startFakeRuntime(
    { ingestBatch: route === 'batch' },
    (_path, body) => {
      const lines = body.trim().split('\n')
      const done = { status: 201, document: { metadata: {} }, chunks: 1 }
      if (route === 'ingest') return [201, done]
      return [200, lines.map((_, index) => `${JSON.stringify({ line: index + 1, ...done })}\n`).join('')]
    },
    // The server reads no more until the progress line has appeared.
    path => (path.endsWith(`/${route}`) ? isSeen : undefined),
  )
  sandbox.env.WB_URL = url
  const { status, text } = await runInTerminal(sandbox, ['kb', 'ingest', 'papers', tree], {
    answer(written) {
      if (going.test(stripSequences(written))) goOn()
      return undefined
    },
  })
  const shown = stripSequences(text)
  expect(status, shown).toBe(0)
  expect(shown).toMatch(going)
  expect(shown).not.toMatch(/[az]\.md {2}[█░]/)
  expect(shown).toContain('✓ 3 added')
})

describe.each(['no server', 'a server'])('Cranfield with %s', way => {
  test('ingests the corpus, and continues where an interrupted run stopped', {
    timeout: 120_000,
  }, async () => {
    const sandbox = createSandbox()
    if (way === 'a server') await sandbox.serve()
    let seen = false
    const interrupted = await runInTerminal(sandbox, ['kb', 'ingest', 'cran', corpus, '--create'], {
      answer(text) {
        if (seen || !/[1-9][\d,]*\/1,400/.test(stripSequences(text))) return undefined
        seen = true
        return '\u0003'
      },
    })
    expect(interrupted.status).toBe(130)
    expect(stripSequences(interrupted.text)).toMatch(
      /✓ [\d,]+ added .*\n(?:.*\n){0,6} {2}[\d,]+ not confirmed; run the command again/,
    )
    const { added, unchanged, skipped, failed } = summary(
      await sandbox.wb(['kb', 'ingest', 'cran', corpus, '--json']),
    )
    expect({ all: added + unchanged, skipped, failed }).toEqual({ all: 1_398, skipped: 2, failed: [] })
    expect(summary(await sandbox.wb(['kb', 'ingest', 'cran', corpus, '--json']))).toMatchObject({
      ...emptySummary,
      unchanged: 1_398,
      skipped: 2,
    })
  })
})

test('sends single requests to a runtime without batch support, and reports rejected documents', async () => {
  const sandbox = createSandbox()
  const tree = writeFiles(sandbox, { 'a.md': 'a', 'b.md': 'b', 'bad.md': 'refused' })
  const requests: string[] = []
  const url = await startFakeRuntime({}, (path, body) => {
    requests.push(path)
    if (JSON.parse(body).text === 'refused')
      return [413, { error: { code: 'payload_too_large', message: 'no', requestId: 'r' } }]
    return [201, { document: { sourceFilename: JSON.parse(body).sourceFilename, metadata: {} }, chunks: 1 }]
  })
  const ended = await sandbox.wb(['kb', 'ingest', 'papers', tree, '--json'], { env: { WB_URL: url } })
  expect(ended.status).toBe(1)
  expect(summary(ended)).toMatchObject({
    ...emptySummary,
    added: 2,
    failed: [{ path: join(tree, 'bad.md'), code: 'payload_too_large', message: 'no' }],
  })
  expect(requests.filter(path => path.endsWith('/ingest'))).toHaveLength(3)
})

test('ends with the error and a summary if the runtime fails for every text', async () => {
  const sandbox = createSandbox()
  const tree = writeFiles(
    sandbox,
    Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`${index}.md`, `text ${index}`])),
  )
  const url = await startFakeRuntime({ ingestBatch: true }, (_, body) => {
    const error = { code: 'embedding_unavailable', message: 'nobody answers', requestId: 'r' }
    const lines = body
      .trim()
      .split('\n')
      .map((_, index) => JSON.stringify({ line: index + 1, status: 503, error }))
    return [200, `${lines.join('\n')}\n`]
  })
  const ended = await sandbox.wb(['kb', 'ingest', 'papers', tree, '--json'], { env: { WB_URL: url } })
  expect(ended.status).toBe(6)
  expect(summary(ended).failed).toHaveLength(20)
  expect(JSON.parse(ended.stderr.trim().split('\n').at(-1)!)).toMatchObject({
    error: { code: 'embedding_unavailable' },
  })
})

test('reports completed documents and ends with status 6 if the connection breaks', async () => {
  const sandbox = createSandbox()
  const tree = writeFiles(sandbox, { 'a.md': 'a', 'b.md': 'b' })
  const url = await startFakeRuntime({ ingestBatch: true }, () => {
    return [0, `${JSON.stringify({ line: 1, status: 201, document: {}, chunks: 1 })}\n`]
  })
  const ended = await sandbox.wb(['kb', 'ingest', 'papers', tree, '--json'], { env: { WB_URL: url } })
  expect(ended.status).toBe(6)
  expect(summary(ended)).toMatchObject({ ...emptySummary, added: 1, interrupted: true })
  expect(ended.stderr).toContain('was lost during the ingest')
})

describe('an error that ends an ingest', () => {
  test('is printed without a summary if nothing was ingested', async () => {
    const sandbox = createSandbox()
    await serveWithApiKeys(sandbox)
    await sandbox.wb(['kb', 'create', 'papers'])
    const reader = await sandbox.wb(['keys', 'create', 'reader', '--role', 'viewer'])
    const viewer = { ...sandbox, env: { ...sandbox.env, WB_API_KEY: reader.stdout.trim() } }
    const line = ['kb', 'ingest', 'papers', writeFiles(sandbox, { 'a.md': 'a', 'b.md': 'b' })]
    const screen = await runInFakeTerminal(viewer, line, { cols: 120 })
    expect(screen.status).toBe(3)
    const shown = stripSequences(screen.text)
      .split('\n')
      // On a busy machine, progress is drawn first and then overwritten.
      .map(text => text.trim().split('\r').at(-1)!.trim())
    const [first] = shown.filter(Boolean)
    expect(first).toMatch(/^✗ .*\(forbidden, request \w+\)$/)
    expect(shown.join('\n')).not.toMatch(/nothing to ingest|not confirmed/)
    const command = `"${process.execPath}" "${resolve('bin/run.js')}" "$@" 2>&1`
    const piped = await runProgram(viewer, 'sh', ['-c', command, 'sh', ...line])
    expect(piped.status).toBe(3)
    expect(piped.stdout).toMatch(/^ {2}✗ .*\(forbidden, .*\)\n(?: {4}.*\n)+$/)
    const json = await sandbox.wb([...line, '--json'], { env: viewer.env })
    expect({ ...json, stderr: JSON.parse(json.stderr) }).toMatchObject({
      status: 3,
      stdout: '',
      stderr: { error: { code: 'forbidden' } },
    })
  })

  test('comes before the summary', async () => {
    const sandbox = createSandbox()
    const url = await startFakeRuntime({ ingestBatch: true }, () => {
      return [0, `${JSON.stringify({ line: 1, status: 201, document: {}, chunks: 1 })}\n`]
    })
    sandbox.env.WB_URL = url
    const line = ['kb', 'ingest', 'papers', writeFiles(sandbox, { 'a.md': 'a', 'b.md': 'b' })]
    const { status, text } = await runInFakeTerminal(sandbox, line)
    expect(status).toBe(6)
    expect(stripSequences(text)).toMatch(
      /✗ The connection to the runtime was lost[\s\S]*✓ 1 added .*\n {2}1 not confirmed; run the command again/,
    )
  })
})

const uuid = (last: number) => `00000000-0000-4000-8000-${String(last).padStart(12, '0')}`

type Answer = (path: string, body: string) => [number, unknown]
type Read = (path: string) => Promise<void> | undefined

/** Starts a runtime with one knowledge base, papers, that gives the configured answers to ingested text. */
function startFakeRuntime(features: object, answer: Answer, read?: Read): Promise<string> {
  const [workspaceId, knowledgeBaseId] = [uuid(1), uuid(2)]
  const known: [start: RegExp, body: object][] = [
    [/^\/features$/, { mcp: { enabled: false, baseUrl: null }, ...features }],
    [/^\/api\/v1\/workspaces\?/, { items: [{ workspaceId, name: 'w' }], nextCursor: null }],
    [/\/ingest\/check$/, { states: [] }],
    [/\/knowledge-bases\?/, { items: [{ workspaceId, knowledgeBaseId, name: 'papers' }], nextCursor: null }],
  ]
  return startFakeServer((path, body) => {
    const [, response] = known.find(([start]) => start.test(path)) ?? []
    return response ? [200, response] : answer(path, body)
  }, read)
}

/**
 * Starts a server that gives the configured answers. Status 0 breaks the connection after the body.
 *
 * @param read  resolves when the server may read the body
 */
async function startFakeServer(answer: Answer, read: Read = () => undefined): Promise<string> {
  const server = createServer(async (request, response) => {
    await read(request.url ?? '')
    const [status, body] = answer(request.url ?? '', await text(request))
    response.writeHead(status || 200, {
      'content-type': typeof body === 'string' ? 'application/x-ndjson' : 'application/json',
    })
    if (status === 0) {
      response.write(body, () => response.destroy())
      return
    }
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  })
  onTestFinished(() => void server.close())
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function text(request: IncomingMessage): Promise<string> {
  let all = ''
  for await (const part of request) all += part
  return all
}

test('a file that is deleted or becomes a link while it is ingested fails alone, and the link is not read', async () => {
  const sandbox = createSandbox()
  const tree = writeFiles(sandbox, { 'a.pdf': 'a', 'b.pdf': 'b', 'c.md': 'c' })
  const received: string[] = []
  const answer: Answer = (path, body) => {
    if (path.includes('/ingest')) received.push(body)
    return [200, path.endsWith('/batch') ? `${JSON.stringify({ line: 1, status: 201, document: {} })}\n` : {}]
  }
  const change: Read = path => {
    if (!path.endsWith('/ingest/check')) return
    rmSync(join(tree, 'a.pdf'))
    rmSync(join(tree, 'b.pdf'))
    symlinkSync('/etc/passwd', join(tree, 'b.pdf'))
  }
  const url = await startFakeRuntime({ ingestBatch: true }, answer, change)
  const ended = await sandbox.wb(['kb', 'ingest', 'papers', tree, '--url', url, '--json'])
  const { added, failed } = summary(ended)
  expect(added).toBe(1)
  expect(failed).toMatchObject([{ code: 'ENOENT' }, { code: 'ELOOP' }])
  expect(received.join()).not.toContain('root:')
})

test('files with the same name in two folders become two documents', async () => {
  const sandbox = createSandbox()
  const tree = writeFiles(sandbox, { 'a/README.md': 'a', 'b/README.md': 'b' })
  const ended = await sandbox.wb(['kb', 'ingest', 'papers', 'a', 'b', '--create', '--json'], { cwd: tree })
  expect(summary(ended)).toMatchObject({ ...emptySummary, added: 2 })
  appendFileSync(join(tree, 'b/README.md'), ' changed')
  const again = await sandbox.wb(['kb', 'ingest', 'papers', 'a', 'b', '--json'], { cwd: tree })
  expect(summary(again)).toMatchObject({ ...emptySummary, replaced: 1, unchanged: 1 })
})

test('a folder of PDF, Word, HTML and other encodings is read, cited by page, and not sent again', async () => {
  const sandbox = createSandbox()
  const pages: [number, string][][] = [
    [[11, 'Welcome to the team.']],
    [
      [20, 'Keys'],
      [11, 'Badges open the garage.'],
    ],
  ]
  const tree = writeFiles(sandbox, {
    'handbook.pdf': await pdf(pages),
    'plan.docx': await wordFile(),
    'page.html': '<title>Page</title><script>hidden()</script><h1>Menu</h1><p>Soup on Monday.</p>',
    'old.txt': Buffer.from('Größe der Küche', 'latin1'),
    'locked.pdf': await pdf([[[11, 'x']]], { userPassword: 'x' }),
    'letter.doc': Buffer.from('d0cf11e0a1b11ae1', 'hex'),
  })
  const args = ['kb', 'ingest', 'papers', tree, '--create']
  const first = await sandbox.wb(args)
  expect(first.stdout).toBe('added\t4\nreplaced\t0\nunchanged\t0\nduplicates\t0\nskipped\t1\nfailed\t1\n')
  expect(first.stderr).toMatch(/locked\.pdf {3}the file is encrypted\. Save it without a password/)
  expect(first.stderr).toMatch(/skipped 1 \.doc: .*letter\.doc \(not supported; save as \.docx\)/)
  expect((await sandbox.wb(args)).stdout).toContain('added\t0\nreplaced\t0\nunchanged\t4\n')
  const search = async (question: string) =>
    stripSequences((await runInFakeTerminal(sandbox, ['kb', 'search', 'papers', question])).text)
  expect(await search('badges')).toMatch(/handbook\.pdf › Keys[\s\S]*handbook\.pdf · page 1 · chunk 0/)
  expect(await search('Größe')).toContain('old.txt')
  expect(await search('soup')).not.toContain('hidden()')
})

test('the summary names a few skipped files, and all of them with --verbose and --json', async () => {
  const sandbox = createSandbox()
  const pictures = Object.fromEntries([1, 2, 3, 4, 5].map(number => [`p${number}.png`, 'x']))
  const tree = writeFiles(sandbox, { 'a.md': 'text', ...pictures })
  const args = ['kb', 'ingest', 'papers', tree, '--create']
  expect((await sandbox.wb(args)).stderr).toMatch(/skipped 5 \.png: .*p3\.png and 2 more \(not supported\)/)
  expect((await sandbox.wb([...args, '--verbose'])).stderr).toMatch(/p3\.png, .*p4\.png, .*p5\.png \(not/)
  const { skippedFiles } = JSON.parse((await sandbox.wb([...args, '--json'])).stdout) as {
    skippedFiles: unknown[]
  }
  expect(skippedFiles).toHaveLength(5)
  expect(skippedFiles[0]).toEqual({ path: join(tree, 'p1.png'), reason: 'not supported' })
})

test('the data of a Git repository is an error as an argument, and is skipped in a folder', async () => {
  const sandbox = createSandbox()
  const data = { HEAD: 'ref: refs/heads/main', 'objects/a.md': 'a', 'refs/b.md': 'b' }
  const repository = Object.fromEntries(
    Object.entries(data).map(([name, text]) => [`mirror.git/${name}`, text]),
  )
  const tree = writeFiles(sandbox, { 'readme.md': 'Read me.', ...repository })
  const failed = await sandbox.wb(['kb', 'ingest', 'papers', join(tree, 'mirror.git'), '--create'])
  expect(failed.stderr).toContain('it holds the data of a Git repository')
  const ingested = await sandbox.wb(['kb', 'ingest', 'papers', tree, '--create', '--json'])
  expect(summary(ingested)).toMatchObject({ added: 1, skippedAs: { 'Git data': 1 } })
})
