import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { SentenceEncoder } from '../../src/sentence-model/sentence-encoder.ts'
import { SentenceModel, type SentenceModelOptions } from '../../src/sentence-model/sentence-model.ts'

/**
 * A worker whose vector of a text is its length, and which notes each start, text and end in the file that it receives.
 * It crashes on `crash`, each time, and on `crash once`, the first time.
 */
const worker = `
import { appendFileSync, readFileSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
const log = workerData.model
const note = line => appendFileSync(log, line + '\\n')
const encode = text => {
  const isFirst = !readFileSync(log, 'utf8').split('\\n').includes(text)
  note(text)
  if (text === 'crash' || (text === 'crash once' && isFirst)) throw new Error('crashed')
  return Float32Array.of(text.length)
}
note('start')
parentPort.on('message', call => {
  if (call === 'close') {
    note('end')
    parentPort.close()
  } else parentPort.postMessage({ id: call.id, value: call.input.map(encode) })
})
`

/** Opens a model with workers that write a log instead of encoding texts. */
function openLogged(options: SentenceModelOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'wb-sentence-'))
  const entry = join(folder, 'worker.mjs')
  const log = join(folder, 'log')
  writeFileSync(entry, worker)
  writeFileSync(log, '')
  const model = new SentenceModel({ ...options, entry, model: log })
  onTestFinished(async () => {
    await model.close()
    rmSync(folder, { recursive: true })
  })
  return { model, log: () => readFileSync(log, 'utf8').split('\n').filter(Boolean) }
}

const background = { priority: 'background' } as const
const query = { priority: 'query' } as const

/** Texts that are too long to share a slice, so each is given to a worker separately. */
function longTexts(...names: string[]): string[] {
  return names.map(name => name.padEnd(600, '.'))
}

const nameOf = (line: string) => line.replace(/\.+$/, '')

test('returns what the encoder returns, from a worker thread', async () => {
  const model = new SentenceModel()
  onTestFinished(() => model.close())
  const texts = ['How do I revoke a key?', '', 'many words '.repeat(60), 'other words '.repeat(60)]
  const expected = new SentenceEncoder().encode(texts)
  expect(await model.embed(texts, query)).toEqual(expected.map(({ vector }) => vector))
  expect(await model.tokenVectors(texts, background)).toEqual(expected)
})

test('loads nothing before the first call', async () => {
  const { model, log } = openLogged()
  expect(await model.embed([], query)).toEqual([])
  await model.close()
  expect(log()).toEqual([])
})

test('a query goes before background work that has not begun', async () => {
  const { model, log } = openLogged()
  const work = model.embed(longTexts('a', 'b', 'c'), background)
  const found = await model.embed(['question'], query)
  expect(found).toEqual([Float32Array.of('question'.length)])
  await work
  expect(log().map(nameOf)).toEqual(['start', 'a', 'question', 'b', 'c'])
})

test('short texts are given to a worker together, in order', async () => {
  const { model, log } = openLogged()
  const work = model.embed(['a', 'bb', 'ccc'], background)
  await model.embed(['question'], query)
  expect(await work).toEqual([1, 2, 3].map(length => Float32Array.of(length)))
  expect(log()).toEqual(['start', 'a', 'bb', 'ccc', 'question'])
})

test('background work starts more threads, and a query uses one that has started', async () => {
  const { model, log } = openLogged({ threads: 2 })
  await model.embed(['first'], query)
  await Promise.all([model.embed(['second'], query), model.embed(['third'], query)])
  expect(log()).toEqual(['start', 'first', 'second', 'third'])
  await model.embed(longTexts('a', 'b'), background)
  expect(log().filter(line => line === 'start')).toHaveLength(2)
})

test('an aborted call is rejected with the reason, and its texts are not encoded', async () => {
  const { model, log } = openLogged()
  const controller = new AbortController()
  const running = model.embed(longTexts('a'), background)
  const aborted = model.embed(longTexts('b', 'c'), { ...background, signal: controller.signal })
  controller.abort(new Error('stopped'))
  await expect(aborted).rejects.toThrow('stopped')
  await expect(model.embed(['d'], { ...query, signal: controller.signal })).rejects.toThrow('stopped')
  await running
  await model.embed(['e'], background)
  expect(log().map(nameOf)).toEqual(['start', 'a', 'e'])
})

test('texts of a crashed worker are encoded again by another', async () => {
  const { model, log } = openLogged()
  expect(await model.embed(['crash once'], query)).toEqual([Float32Array.of(10)])
  expect(log()).toEqual(['start', 'crash once', 'start', 'crash once'])
})

test('a call that crashes two workers is rejected, and later calls are answered', async () => {
  const { model, log } = openLogged()
  const crashing = model.embed(['crash', ...longTexts('a', 'b')], background)
  const next = model.embed(['ok'], background)
  await expect(crashing).rejects.toThrow('crashed')
  expect(await next).toEqual([Float32Array.of(2)])
  expect(log().filter(line => line === 'crash')).toHaveLength(2)
})

test('reports a damaged model', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'wb-sentence-'))
  const path = join(folder, 'model.safetensors')
  writeFileSync(path, 'not a model')
  const model = new SentenceModel({ model: path })
  onTestFinished(async () => {
    await model.close()
    rmSync(folder, { recursive: true })
  })
  await expect(model.embed(['a'], query)).rejects.toThrow(`cannot read ${path}: its header is too long`)
})

test('an idle worker ends, and the next call starts another', async () => {
  const { model, log } = openLogged({ idleMs: 1 })
  await model.embed(['a'], query)
  await expect.poll(log).toEqual(['start', 'a', 'end'])
  await model.embed(['b'], query)
  expect(log().slice(3, 5)).toEqual(['start', 'b'])
})

test('closing finishes what has begun, and rejects what waits and later calls', async () => {
  const { model, log } = openLogged()
  const begun = model.embed(longTexts('a'), background)
  const waiting = expect(model.embed(longTexts('b'), background)).rejects.toThrow(
    'the sentence model is closed',
  )
  await model.close()
  expect(await begun).toEqual([Float32Array.of(600)])
  await waiting
  await expect(model.embed(['c'], query)).rejects.toThrow('the sentence model is closed')
  expect(log().map(nameOf)).toEqual(['start', 'a', 'end'])
})
