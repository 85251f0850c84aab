import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stem, words } from '../../src/base/words.ts'
import { cranfield, entriesOf } from '../harness/judged.ts'
import { inFakeTerminal, withoutSequences } from './terminal.ts'
import { type Place, placesLike } from './wb.ts'

const questionsAsked = 20
const timeout = 300_000
const heated =
  'what similarity laws must be obeyed when constructing aeroelastic models of heated high speed aircraft'

interface Shown {
  number: string
  lines: string[]
  marks: string[]
  documentId: string
  chunk: number
}

/** The passages of a screen, read as a person would. */
function passagesOf(screen: string): Shown[] {
  const cards = screen.replaceAll('\r\n', '\n').split(/\n(?=\[\d+\])/)
  return cards.flatMap(card => {
    const body = card.split('\n').slice(1)
    const end = body.findIndex(line => /chunk \d+/.test(line))
    const place = withoutSequences(body.slice(end).join('\n'))
    const found = /chunk (\d+)\s+·?\s*([0-9a-f-]{36})/.exec(place.replace(/\n/g, ' '))
    if (!found) return []
    const said = body.slice(0, end)
    return {
      number: /\[(\d+)\]/.exec(withoutSequences(card))![1]!,
      lines: said.map(line => withoutSequences(line).trim()),
      marks: said.flatMap(line => [...line.matchAll(/\u001b\[1m(.*?)\u001b\[22m/g)].map(match => match[1]!)),
      chunk: Number(found[1]),
      documentId: found[2]!,
    }
  })
}

/** @param base  address of a knowledge base */
async function chunkText(base: string, documentId: string, index: number): Promise<string> {
  const answer = await fetch(`${base}/documents/${documentId}/chunks`)
  const chunks = (await answer.json()) as { chunkIndex: number; text: string }[]
  return chunks.find(({ chunkIndex }) => chunkIndex === index)!.text
}

/** Until it is fitted, which changes scores. */
async function fitted(here: Place): Promise<void> {
  const { stdout } = await here.wb(['kb', 'show', '--json'])
  if ((JSON.parse(stdout) as { embedder: { state: string } }).embedder.state !== 'ready') await fitted(here)
}

/** A place with the Cranfield collection, which is ingested once. */
const withCranfield = placesLike(async here => {
  await here.wb(['kb', 'create', 'cran'])
  const { status, stderr } = await here.wb(['kb', 'ingest', 'cran', join(cranfield, 'corpus.jsonl')])
  expect(status, stderr).toBe(0)
  await fitted(here)
})

/** In a pipe passages are tab-separated and whole, with --json as the API has them. */
async function cited(here: Place): Promise<void> {
  const piped = await here.wb(['kb', 'search', 'cran', heated])
  expect(piped).toMatchObject({ status: 0, stderr: '' })
  const rows = piped.stdout
    .trimEnd()
    .split('\n')
    .map(line => line.split('\t'))
  expect(rows.map(([number]) => number)).toEqual(['1', '2', '3', '4', '5', '6', '7', '8', '9', '10'])
  expect(rows.slice(0, 5).map(([, , , , file]) => file)).toContain('corpus.jsonl#51')
  const { stdout } = await here.wb(['kb', 'search', heated, '--json', '--limit', '3'])
  const hits = JSON.parse(stdout) as { id: string; score: number; payload: { chunkText: string } }[]
  expect(hits).toHaveLength(3)
  expect(hits[0]!.id).toBe(`${rows[0]![2]}:${rows[0]![3]}`)
  expect(rows[0]![6]).toBe(hits[0]!.payload.chunkText.replace(/\s+/g, ' ').trim())
}

test('the main job with no server prints cited passages', { timeout }, async () => {
  await cited(await withCranfield())
})

describe('beside a server', () => {
  let here: Place
  let url: string
  beforeAll(async () => {
    here = await withCranfield(afterAll)
    ;({ url } = await here.serve())
  }, timeout)

  test('the main job prints cited passages', () => cited(here))

  test('20 questions in a terminal: marked words occur, no word is cut, one document has three of ten places, [n] leads back', {
    timeout,
  }, async () => {
    const { stdout } = await here.wb(['kb', 'show', '--json'])
    const { workspaceId, knowledgeBaseId } = JSON.parse(stdout) as Record<string, string>
    const base = `${url}/api/v1/workspaces/${workspaceId}/knowledge-bases/${knowledgeBaseId}`
    const questions = entriesOf(cranfield, 'queries.jsonl').slice(0, questionsAsked)
    for (const [at, { text: question }] of questions.entries()) {
      const { status, text } = await inFakeTerminal(here, ['kb', 'search', 'cran', question], {
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
      const back = await here.wb(['documents', 'show', `[${number}]`, '--json'])
      expect(JSON.parse(back.stdout)).toMatchObject({ documentId })
    }
  })
})

const withNotes = placesLike(async here => {
  const folder = join(here.home, 'notes')
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
  await here.wb(['kb', 'ingest', 'notes', folder, '--create'])
})

test('one argument is the question, two are base and question; no base of this name is told', async () => {
  const here = await withNotes()
  const one = await here.wb(['kb', 'search', 'how do keys rotate'])
  expect(one.stdout).toBe((await here.wb(['kb', 'search', 'notes', 'how do keys rotate'])).stdout)
  expect(one.stdout).toContain('keys.md')
  const wrong = await here.wb(['kb', 'search', 'note', 'keys'])
  expect(wrong).toMatchObject({ status: 4, stdout: '' })
  expect(wrong.stderr).toContain('did you mean notes?')
})

test('in a pipe with several knowledge bases, the error suggests --all', async () => {
  const here = await withNotes()
  await here.wb(['kb', 'create', 'other'])
  expect(await here.wb(['kb', 'search', 'keys'])).toEqual({
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
  const narrowed = await here.wb(['kb', 'search', 'keys', '--saved', 'german'])
  expect([narrowed.status, narrowed.stderr]).toEqual([2, expect.not.stringContaining('--all')])
})

test('a passage is shown without the escapes that its document holds [security rule 16]', async () => {
  const here = await withNotes()
  const { text } = await inFakeTerminal(here, ['kb', 'search', 'whales sing', '--limit', '1'])
  expect(text).not.toContain('\u001b]0;')
  expect(text).not.toContain('\u001b[2J')
  expect(withoutSequences(text)).toContain('Whales sing and dive.')
})

test('a card: number, title with section, bar, marked words, source; and the line to type next', async () => {
  const here = await withNotes()
  const { text } = await inFakeTerminal(here, ['kb', 'search', 'how do keys rotate', '--limit', '1'])
  expect(text).toContain('\u001b[1mKeys\u001b[22m \u001b[1mrotate\u001b[22m by replacement')
  const [head, ...rest] = withoutSequences(text).trim().split('\n')
  expect(head).toMatch(/^\[1\] {2}API keys › Rotation +▮▮▮▮▮$/)
  expect(head!.length).toBe(79)
  expect(rest.at(-1)).toBe('  wb documents show 1')
  expect(withoutSequences(text)).toMatch(/\n {5}keys\.md · chunk 0 · [0-9a-f-]{36}\n/)
  const explained = await inFakeTerminal(here, [
    'kb',
    'search',
    'how do keys rotate',
    '--limit',
    '1',
    '--explain',
  ])
  expect(withoutSequences(explained.text)).toMatch(/ \d\.\d{4} {2}100 % ▮▮▮▮▮\n/)
})

test('modes and filters reach the API, and a filter that is no object is a usage error', async () => {
  const here = await withNotes()
  const filtered = await here.wb(['kb', 'search', 'days', '--filter', '{"lang":"en"}'])
  expect(
    filtered.stdout
      .trimEnd()
      .split('\n')
      .map(line => line.split('\t')[4]),
  ).toEqual(['lines.jsonl#x'])
  const lexical = await here.wb(['kb', 'search', 'refunds', '--mode', 'lexical'])
  expect(lexical.stdout.trimEnd().split('\n')).toHaveLength(1)
  expect(
    (await here.wb(['kb', 'search', 'refunds', '--mode', 'vector'])).stdout.split('\n').length,
  ).toBeGreaterThan(2)
  expect(await here.wb(['kb', 'search', 'days', '--filter', '[1]'])).toMatchObject({ status: 2, stdout: '' })
})

test('nothing found is no error: it says of how many documents, and what to try', async () => {
  const here = await withNotes()
  const none = await here.wb(['kb', 'search', 'zzzqqq', '--mode', 'lexical'])
  expect(none).toMatchObject({ status: 0, stdout: '' })
  expect(none.stderr).toMatch(/^ {2}no results in notes \(3 documents\)\n {2}try /)
  expect((await here.wb(['kb', 'search', 'zzzqqq', '--mode', 'lexical', '--json'])).stdout).toBe('[]\n')
})

test('the last search is remembered by ids alone, for this user alone, and by runtime', async () => {
  const here = await withNotes()
  await here.wb(['kb', 'search', 'whales'])
  const stored = join(here.env.XDG_CONFIG_HOME!, 'workbase', 'last-search.json')
  expect(statSync(stored).mode & 0o777).toBe(0o600)
  expect(readFileSync(stored, 'utf8')).not.toMatch(/whales|krill|evil/i)
  expect(JSON.parse((await here.wb(['documents', 'show', '1', '--json'])).stdout)).toMatchObject({
    sourceFilename: 'evil.md',
  })
  expect((await here.wb(['documents', 'show', '[9]'])).status).toBe(4)
  const { stdout: gone } = await here.wb(['documents', 'show', '1', '--json'])
  await here.wb(['documents', 'delete', (JSON.parse(gone) as { documentId: string }).documentId, '--yes'])
  const missing = await here.wb(['documents', 'show', '1'])
  expect(missing.status).toBe(4)
  expect(missing.stderr).toContain('deleted after the last search')
})
