import { expect, onTestFinished, test } from 'vitest'
import { NativeEncoder } from '../../src/sentence-model/native-encoder.ts'
import { loadNativeRuntime } from '../../src/sentence-model/native-runtime.ts'
import { SentenceEncoder } from '../../src/sentence-model/sentence-encoder.ts'
import { SentenceModel } from '../../src/sentence-model/sentence-model.ts'
import { cranfield, qualityAt10, readEntries, readGrades } from '../harness/beir.ts'
import { cosine } from '../sentence-model/reference-encoder.ts'
import { nativeRuntime } from './native-runtime.ts'

const queries = readEntries(cranfield, 'queries.jsonl')
const documents = readEntries(cranfield, 'corpus.jsonl').filter(({ text }) => text)
const grades = readGrades(cranfield)

/** Returns the mean nDCG@10 of rankings by the cosine of vectors. */
function qualityOf(queryVectors: readonly Float32Array[], documentVectors: readonly Float32Array[]): number {
  const measured = queries.flatMap(({ _id }, at) => {
    const judged = grades.get(_id)
    if (!judged) return []
    const ranking = documentVectors
      .map((vector, index) => ({ id: documents[index]!._id, score: cosine(queryVectors[at]!, vector) }))
      .sort((a, b) => b.score - a.score)
    return [
      qualityAt10(
        ranking.map(({ id }) => id),
        judged,
      ).ndcg,
    ]
  })
  return measured.reduce((sum, ndcg) => sum + ndcg, 0) / measured.length
}

test('vectors of both engines can be compared with each other, in one ranking', async () => {
  const wasm = new SentenceEncoder()
  const native = await NativeEncoder.open(loadNativeRuntime(nativeRuntime))
  onTestFinished(() => native.close())
  const questions = queries.map(({ text }) => text)
  const texts = documents.map(({ title, text }) => `${title} ${text}`)
  const vectors = {
    wasm: { questions: wasm.embed(questions), texts: wasm.embed(texts) },
    native: { questions: await native.embed(questions), texts: await native.embed(texts) },
  }
  const cosines = (['questions', 'texts'] as const).flatMap(part =>
    vectors.wasm[part].map((vector, at) => cosine(vector, vectors.native[part][at]!)),
  )
  const mixed = vectors.wasm.texts.map((vector, at) => (at % 2 ? vectors.native.texts[at]! : vector))
  const expected = qualityOf(vectors.wasm.questions, vectors.wasm.texts)
  expect(Math.min(...cosines)).toBeGreaterThan(0.98)
  for (const quality of [
    qualityOf(vectors.native.questions, vectors.native.texts),
    qualityOf(vectors.native.questions, mixed),
    qualityOf(vectors.wasm.questions, mixed),
  ])
    expect(quality).toBeGreaterThan(expected - 0.01)
}, 900_000)

test('workers use the runtime, end when they are idle, and start again', async () => {
  const reasons: string[] = []
  const onNativeFailure = (reason: string) => reasons.push(reason)
  const model = new SentenceModel({ runtime: nativeRuntime, idleMs: 100, onNativeFailure })
  onTestFinished(() => model.close())
  for (let start = 0; start < 3; start++) {
    await model.embed(['word '.repeat(200), 'word '.repeat(200)], { priority: 'background' })
    expect(await model.engine()).toEqual({ name: 'native', failure: null })
    await new Promise(resolve => setTimeout(resolve, 500))
    expect(await model.engine()).toEqual({ name: 'wasm', failure: null })
  }
  expect(reasons).toEqual([])
})
