import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stem, words } from '../../src/base/words.ts'
import { cranfield, readEntries } from '../harness/beir.ts'
import { type Sandbox, sandboxFactory } from './sandbox.ts'
import { runInFakeTerminal, stripSequences } from './terminal.ts'

const questionsAsked = 20
const timeout = 300_000
const aircraftQuestion =
  'what similarity laws must be obeyed when constructing aeroelastic models of heated high speed aircraft'

interface ShownPassage {
  number: string
  lines: string[]
  marks: string[]
  documentId: string
  chunk: number
}

/** Parses the passages on a screen. */
function passagesOf(screen: string): ShownPassage[] {
  const cards = screen.replaceAll('\r\n', '\n').split(/\n(?=\[\d+\])/)
  return cards.flatMap(card => {
    const body = card.split('\n').slice(1)
    const end = body.findIndex(line => /chunk \d+/.test(line))
    const sourceLine = stripSequences(body.slice(end).join('\n'))
    const found = /chunk (\d+)\s+·?\s*([0-9a-f-]{36})/.exec(sourceLine.replace(/\n/g, ' '))
    if (!found) return []
    const text = body.slice(0, end)
    return {
      number: /\[(\d+)\]/.exec(stripSequences(card))![1]!,
      lines: text.map(line => stripSequences(line).trim()),
      marks: text.flatMap(line => [...line.matchAll(/\u001b\[1m(.*?)\u001b\[22m/g)].map(match => match[1]!)),
      chunk: Number(found[1]),
      documentId: found[2]!,
    }
  })
}

/** Fetches the text of a chunk. `base` is the address of the knowledge base. */
async function chunkText(base: string, documentId: string, index: number): Promise<string> {
  const answer = await fetch(`${base}/documents/${documentId}/chunks`)
  const chunks = (await answer.json()) as { chunkIndex: number; text: string }[]
  return chunks.find(({ chunkIndex }) => chunkIndex === index)!.text
}

/** Waits until the embedder is fitted, which changes scores. */
async function waitUntilFitted(sandbox: Sandbox): Promise<void> {
  const { stdout } = await sandbox.wb(['kb', 'show', '--json'])
  if ((JSON.parse(stdout) as { embedder: { state: string } }).embedder.state !== 'ready')
    await waitUntilFitted(sandbox)
}

/** A sandbox with the Cranfield collection, which is ingested once. */
const withCranfield = sandboxFactory(async sandbox => {
  await sandbox.wb(['kb', 'create', 'cran'])
  const { status, stderr } = await sandbox.wb(['kb', 'ingest', 'cran', join(cranfield, 'corpus.jsonl')])
  expect(status, stderr).toBe(0)
  await waitUntilFitted(sandbox)
})

/** Checks that passages are complete, tab-separated in a pipe, and in API format with --json. */
async function expectCitedPassages(sandbox: Sandbox): Promise<void> {
  const piped = await sandbox.wb(['kb', 'search', 'cran', aircraftQuestion])
  expect(piped).toMatchObject({ status: 0, stderr: '' })
  const rows = piped.stdout
    .trimEnd()
    .split('\n')
    .map(line => line.split('\t'))
  expect(rows.map(([number]) => number)).toEqual(['1', '2', '3', '4', '5', '6', '7', '8', '9', '10'])
  expect(rows.slice(0, 5).map(([, , , , file]) => file)).toContain('corpus.jsonl#51')
  const { stdout } = await sandbox.wb(['kb', 'search', aircraftQuestion, '--json', '--limit', '3'])
  const hits = JSON.parse(stdout) as { id: string; score: number; payload: { chunkText: string } }[]
  expect(hits).toHaveLength(3)
  expect(hits[0]!.id).toBe(`${rows[0]![2]}:${rows[0]![3]}`)
  expect(rows[0]![6]).toBe(hits[0]!.payload.chunkText.replace(/\s+/g, ' ').trim())
}

test('searches without a server, and prints cited passages', { timeout }, async () => {
  await expectCitedPassages(await withCranfield())
})

describe('with a running server', () => {
  let sandbox: Sandbox
  let url: string
  beforeAll(async () => {
    sandbox = await withCranfield(afterAll)
    ;({ url } = await sandbox.serve())
  }, timeout)

  test('prints cited passages', () => expectCitedPassages(sandbox))

  test('20 questions in a terminal: marks are terms of the question, words are complete, a document has at most three passages, and [n] opens the document', {
    timeout,
  }, async () => {
    const { stdout } = await sandbox.wb(['kb', 'show', '--json'])
    const { workspaceId, knowledgeBaseId } = JSON.parse(stdout) as Record<string, string>
    const base = `${url}/api/v1/workspaces/${workspaceId}/knowledge-bases/${knowledgeBaseId}`
    const questions = readEntries(cranfield, 'queries.jsonl').slice(0, questionsAsked)
    for (const [at, { text: question }] of questions.entries()) {
      const { status, text } = await runInFakeTerminal(sandbox, ['kb', 'search', 'cran', question], {
        cols: at % 2 ? 80 : 40,
      })
      expect(status).toBe(0)
      const shown = passagesOf(text)
      expect(shown.map(({ number }) => number)).toEqual(
        Array.from({ length: 10 }, (_, index) => String(index + 1)),
      )
      const places = shown.map(
        ({ documentId }) => shown.filter(other => other.documentId === documentId).length,
      )
      expect(Math.max(...places)).toBeLessThanOrEqual(3)
      const stems = new Set(words(question).map(stem))
      expect(shown.some(({ marks }) => marks.length > 1)).toBe(true)
      for (const { marks } of shown) for (const mark of marks) expect(stems).toContain(stem(words(mark)[0]!))
      const { number, documentId, chunk, lines, marks } = shown[at % 10]!
      const whole = await chunkText(base, documentId, chunk)
      const tokens = new Set(whole.split(/\s+/))
      for (const token of lines.join(' ').split(/\s+/)) if (token !== '…') expect(tokens).toContain(token)
      for (const mark of marks) expect(whole).toContain(mark)
      const back = await sandbox.wb(['documents', 'show', `[${number}]`, '--json'])
      expect(JSON.parse(back.stdout)).toMatchObject({ documentId })
    }
  })
})

const withNotes = sandboxFactory(async sandbox => {
  const folder = join(sandbox.home, 'notes')
  mkdirSync(folder)
  writeFileSync(
    join(folder, 'keys.md'),
    '# API keys\n\n## Rotation\n\nKeys rotate by replacement: mint a new key.\n',
  )
  writeFileSync(
    join(folder, 'evil.md'),
    `Whales \u001b]0;owned\u0007sing \u001b[2Jand dive. ${'Krill '.repeat(40)}\n`,
  )
  writeFileSync(
    join(folder, 'lines.jsonl'),
    '{"_id":"x","text":"Refunds take ten days.","metadata":{"lang":"en"}}\n',
  )
  await sandbox.wb(['kb', 'ingest', 'notes', folder, '--create'])
})

test('one argument is the question, two are the knowledge base and the question, and an unknown name is an error', async () => {
  const sandbox = await withNotes()
  const one = await sandbox.wb(['kb', 'search', 'how do keys rotate'])
  expect(one.stdout).toBe((await sandbox.wb(['kb', 'search', 'notes', 'how do keys rotate'])).stdout)
  expect(one.stdout).toContain('keys.md')
  const invalid = await sandbox.wb(['kb', 'search', 'note', 'keys'])
  expect(invalid).toMatchObject({ status: 4, stdout: '' })
  expect(invalid.stderr).toContain('did you mean notes?')
})

test('in a pipe with several knowledge bases, the error suggests --all, or a question after the name of one', async () => {
  const sandbox = await withNotes()
  await sandbox.wb(['kb', 'create', 'other'])
  expect(await sandbox.wb(['kb', 'search', 'keys'])).toEqual({
    status: 2,
    stdout: '',
    stderr: [
      '  ✗ There are 2 knowledge bases in workspace default; specify one, or search all of them',
      '    wb kb search --all keys',
      '    wb kb search notes keys',
      '    wb kb search other keys',
      '',
    ].join('\n'),
  })
  expect((await sandbox.wb(['kb', 'search', 'other'])).stderr).toMatch(
    /^ {2}✗ Other is a knowledge base; add a question\n {4}wb kb search other QUESTION\n {4}wb kb search --all other\n/,
  )
  const narrowed = await sandbox.wb(['kb', 'search', 'keys', '--saved', 'german'])
  expect([narrowed.status, narrowed.stderr]).toEqual([2, expect.not.stringContaining('--all')])
})

test('strips escape sequences of a document from its passages [security rule 16]', async () => {
  const sandbox = await withNotes()
  const { text } = await runInFakeTerminal(sandbox, ['kb', 'search', 'whales sing', '--limit', '1'])
  expect(text).not.toContain('\u001b]0;')
  expect(text).not.toContain('\u001b[2J')
  expect(stripSequences(text)).toContain('Whales sing and dive.')
})

test('prints a card with number, title, section, bar, marked words and source, and a suggested command', async () => {
  const sandbox = await withNotes()
  const { text } = await runInFakeTerminal(sandbox, ['kb', 'search', 'how do keys rotate', '--limit', '1'])
  expect(text).toContain('\u001b[1mKeys\u001b[22m \u001b[1mrotate\u001b[22m by replacement')
  const [head, ...rest] = stripSequences(text).trim().split('\n')
  expect(head).toMatch(/^\[1\] {2}API keys › Rotation +▮▮▮▮▮$/)
  expect(head!.length).toBe(79)
  expect(rest.at(-1)).toBe('  wb documents show 1')
  expect(stripSequences(text)).toMatch(/\n {5}keys\.md · chunk 0 · [0-9a-f-]{36}\n/)
  const explained = await runInFakeTerminal(sandbox, [
    'kb',
    'search',
    'how do keys rotate',
    '--limit',
    '1',
    '--explain',
  ])
  expect(stripSequences(explained.text)).toMatch(/ \d\.\d{4} {2}100 % ▮▮▮▮▮\n/)
})

test('passes modes and filters to the API, and rejects a filter that is not an object as a usage error', async () => {
  const sandbox = await withNotes()
  const filtered = await sandbox.wb(['kb', 'search', 'days', '--filter', '{"lang":"en"}'])
  expect(
    filtered.stdout
      .trimEnd()
      .split('\n')
      .map(line => line.split('\t')[4]),
  ).toEqual(['lines.jsonl#x'])
  const lexical = await sandbox.wb(['kb', 'search', 'refunds', '--mode', 'lexical'])
  expect(lexical.stdout.trimEnd().split('\n')).toHaveLength(1)
  expect(
    (await sandbox.wb(['kb', 'search', 'refunds', '--mode', 'vector'])).stdout.split('\n').length,
  ).toBeGreaterThan(2)
  expect(await sandbox.wb(['kb', 'search', 'days', '--filter', '[1]'])).toMatchObject({
    status: 2,
    stdout: '',
  })
})

test('no results is not an error, and reports the number of documents and how to broaden the search', async () => {
  const sandbox = await withNotes()
  const none = await sandbox.wb(['kb', 'search', 'zzzqqq', '--mode', 'lexical'])
  expect(none).toMatchObject({ status: 0, stdout: '' })
  expect(none.stderr).toMatch(/^ {2}no results in notes \(3 documents\)\n {2}try /)
  expect((await sandbox.wb(['kb', 'search', 'zzzqqq', '--mode', 'lexical', '--json'])).stdout).toBe('[]\n')
})

test('stores only IDs of the last search, readable only by the user, per runtime', async () => {
  const sandbox = await withNotes()
  await sandbox.wb(['kb', 'search', 'whales'])
  const stored = join(sandbox.env.XDG_CONFIG_HOME!, 'workbase', 'last-search.json')
  expect(statSync(stored).mode & 0o777).toBe(0o600)
  expect(readFileSync(stored, 'utf8')).not.toMatch(/whales|krill|evil/i)
  expect(JSON.parse((await sandbox.wb(['documents', 'show', '1', '--json'])).stdout)).toMatchObject({
    sourceFilename: 'evil.md',
  })
  expect((await sandbox.wb(['documents', 'show', '[9]'])).status).toBe(4)
  const { stdout: deleted } = await sandbox.wb(['documents', 'show', '1', '--json'])
  await sandbox.wb([
    'documents',
    'delete',
    (JSON.parse(deleted) as { documentId: string }).documentId,
    '--yes',
  ])
  const missing = await sandbox.wb(['documents', 'show', '1'])
  expect(missing.status).toBe(4)
  expect(missing.stderr).toContain('deleted after the last search')
})
