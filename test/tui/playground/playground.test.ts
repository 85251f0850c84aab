import { expect, test } from 'vitest'
import type { Passage } from '../../../src/cli/passages/find-passages.ts'
import { Unreachable } from '../../../src/client/unreachable.ts'
import { Playground, type PlaygroundRunnerOptions } from '../../../src/tui/playground/playground.ts'
import type { PlaygroundSearch, SearchResults } from '../../../src/tui/playground/port.ts'
import { TestClock, waitUntil } from '../../harness/runtime.ts'
import { base, documentNamed, keysOf, PlaygroundDriver, passage, searchResults } from './playground-driver.ts'

interface Call {
  readonly request: PlaygroundSearch
  readonly signal: AbortSignal
  answer(found: SearchResults): void
  fail(error: Error): void
}

function stage(copy?: (text: string) => Promise<void>, judge: PlaygroundRunnerOptions['judge'] = () => '') {
  const clock = new TestClock()
  const calls: Call[] = []
  const { target, bases } = new PlaygroundDriver().state
  const port = {
    knowledgeBases: async () => [...bases, base('new')],
    search: (request: PlaygroundSearch, signal: AbortSignal) =>
      new Promise<SearchResults>((answer, fail) => calls.push({ request, signal, answer, fail })),
    chunkText: async ({ id }: Passage) => `chunk of ${id}`,
  }
  const left: string[] = []
  const play = new Playground(
    {
      target,
      bases,
      base: bases[0],
      question: '',
      grades: new Map(),
      size: { columns: 100, rows: 30 },
      nowMs: clock.now(),
    },
    { port, clock, copy, judge, onChange() {}, onRedraw() {}, onLeave: () => left.push('left') },
  )
  const type = (typed: string) => {
    for (const key of keysOf(typed)) play.dispatch(key)
  }
  return { clock, calls, play, left, type }
}

test('searches only after a pause in typing, and aborts an older search', async () => {
  const { clock, calls, play, type } = stage()
  type('h')
  clock.advance(119)
  type('e')
  clock.advance(119)
  expect(calls).toEqual([])
  clock.advance(1)
  expect(calls.map(({ request }) => request.body.text)).toEqual(['he'])
  type('a')
  expect(calls[0]!.signal.aborted).toBe(true)
  clock.advance(120)
  calls[1]!.answer(searchResults('newer'))
  await waitUntil(() => play.state.results !== undefined)
  calls[0]!.answer(searchResults('older'))
  await Promise.resolve()
  expect(play.state.results?.passages).toMatchObject([{ id: 'newer' }])
  play.close()
})

test('retries while the runtime is unreachable', async () => {
  const { clock, calls, play, type } = stage()
  type('heat')
  clock.advance(120)
  for (const [tries, waitMs] of [500, 1_000, 2_000].entries()) {
    calls[tries]!.fail(new Unreachable('nothing answers', ''))
    await waitUntil(() => play.state.failedAttempts === tries + 1)
    clock.advance(waitMs)
    expect(calls).toHaveLength(tries + 2)
  }
  calls[3]!.answer(searchResults('a'))
  await waitUntil(() => play.state.failedAttempts === 0)
  expect(play.state).toMatchObject({ results: { passages: [{ id: 'a' }] }, pending: undefined })
})

test('loads a list when it opens, and reports the result of copying', async () => {
  const copied: string[] = []
  const { play, left, type } = stage(async text => void copied.push(text))
  type('\t')
  await waitUntil(() => play.state.bases.length === 2)
  type('\t')
  type('heat\x1b')
  type('cw')
  await waitUntil(() => play.state.notice !== '')
  expect(copied).toEqual(['wb kb search papers heat'])
  type('\x03')
  expect(left).toEqual(['left'])
  play.close()
})

test('judges the selected passage for the question of its results, and reports a file that cannot be written', async () => {
  const stored: unknown[] = []
  const { clock, calls, play, type } = stage(undefined, (baseName, judgment) => {
    if (judgment.grade === 0) throw new Error('the disk is full')
    stored.push([baseName, judgment])
    return 'papers.judgments.jsonl'
  })
  type('heat')
  clock.advance(120)
  const document = documentNamed('heat.md')
  calls[0]!.answer({ passages: [passage('a'), passage('b', { document })], tookMs: 1 })
  await waitUntil(() => play.state.results !== undefined)
  play.dispatch({ type: 'escape' })
  type('3')
  expect(play.state.notice).toBe('only passages of documents can be judged')
  play.dispatch({ type: 'down' })
  type('3')
  expect(play.state.notice).toBe('grade 3, saved to papers.judgments.jsonl')
  const judgment = { question: 'heat', document: 'heat.md', text: 'what b says', grade: 3 }
  expect(stored).toEqual([['papers', judgment]])
  type('0')
  expect(play.state.notice).toBe('the grade was not saved: unexpected error: the disk is full')
  play.close()
})

test('judges a joined passage by its best chunk', async () => {
  const stored: string[] = []
  const { clock, calls, play, type } = stage(undefined, (_, { text = '' }) => {
    stored.push(text)
    return 'papers.judgments.jsonl'
  })
  type('heat')
  clock.advance(120)
  const joined = passage('a', { document: documentNamed('heat.md'), chunks: { first: 0, last: 2 } })
  calls[0]!.answer({ passages: [joined], tookMs: 1 })
  await waitUntil(() => play.state.results !== undefined)
  play.dispatch({ type: 'escape' })
  type('3')
  await waitUntil(() => play.state.notice === 'grade 3, saved to papers.judgments.jsonl')
  expect(stored).toEqual(['chunk of a'])
  expect(play.state.grades.size).toBe(1)
  play.close()
})
