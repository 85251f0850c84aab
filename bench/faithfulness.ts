/**
 * Measures the check of answers with the labeled sentences of `test/fixtures/faithfulness`: how many unsupported
 * sentences it marks, and how many supported ones.
 *
 * npm run bench:faithfulness
 */

import { readFileSync } from 'node:fs'
import { claimsIn } from '../src/agents/chat/claims.ts'
import { SUPPORT_MIN, supportOf } from '../src/agents/chat/support.ts'
import { SentenceModel } from '../src/sentence-model/sentence-model.ts'
import { median, quantile, table } from './statistics.ts'

interface Topic {
  readonly topic: string
  readonly half: 'tune' | 'held-out'
  readonly passages: readonly string[]
  readonly sentences: readonly (readonly [kind: string, text: string])[]
}

interface Scored {
  readonly half: Topic['half']
  readonly kind: string
  readonly text: string
  readonly isSupported: boolean
  readonly support: number
}

const supportedKinds = ['verbatim', 'paraphrase', 'merged']
const topics = JSON.parse(
  readFileSync(new URL('../test/fixtures/faithfulness/topics.json', import.meta.url), 'utf8'),
) as Topic[]
const model = new SentenceModel()
const embed = (texts: readonly string[]) => model.embed(texts, { priority: 'query' })
await embed(['warm'])

const scored: Scored[] = []
const times: number[] = []
/** Number of sentences of the answers whose check is timed. */
const answerSentences = 6
for (const { half, passages, sentences } of topics) {
  const evidence = { passages, context: '' }
  for (const [kind, text] of sentences) {
    // A sentence that is not checked is never marked.
    const [claim] = claimsIn(text)
    const [support] = (claim && (await supportOf([claim.text], evidence, embed))) ?? [1]
    scored.push({ half, kind, text, isSupported: supportedKinds.includes(kind), support: support! })
  }
  for (let from = 0; from + answerSentences <= sentences.length; from += answerSentences) {
    const answer = sentences
      .slice(from, from + answerSentences)
      .map(([, text]) => text)
      .join(' ')
    const startedAt = performance.now()
    await supportOf(
      claimsIn(answer).map(({ text }) => text),
      evidence,
      embed,
    )
    times.push(performance.now() - startedAt)
  }
}
await model.close()

/** Probability that an unsupported sentence has less support than a supported one. */
function areaUnderCurve(rows: readonly Scored[]): number {
  const [good, bad] = [rows.filter(row => row.isSupported), rows.filter(row => !row.isSupported)]
  const wins: number[] = bad.flatMap(({ support }) =>
    good.map(other => (support < other.support ? 1 : support === other.support ? 0.5 : 0)),
  )
  return wins.reduce((sum, win) => sum + win, 0) / wins.length
}

function rates(rows: readonly Scored[], threshold: number) {
  const marked = rows.filter(({ support }) => support < threshold)
  const hits = marked.filter(row => !row.isSupported).length
  const supported = rows.filter(row => row.isSupported).length
  return {
    precision: hits / (marked.length || 1),
    recall: hits / (rows.length - supported),
    falseMarks: (marked.length - hits) / supported,
  }
}

const percent = (share: number) => `${(100 * share).toFixed(0)} %`
const halves = (['tune', 'held-out'] as const).map(half => ({
  half,
  rows: scored.filter(row => row.half === half),
}))
const rows = halves.flatMap(({ half, rows: all }) =>
  [0, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5].map(threshold => {
    const { precision, recall, falseMarks } = rates(all, threshold)
    const isChosen = threshold === SUPPORT_MIN
    return [
      half,
      `${threshold}${isChosen ? ' (chosen)' : ''}`,
      percent(precision),
      percent(recall),
      percent(falseMarks),
    ]
  }),
)
console.log(table(['half', 'threshold', 'precision', 'recall', 'supported sentences marked'], rows))
for (const { half, rows: all } of halves) console.log(`AUC, ${half}: ${areaUnderCurve(all).toFixed(3)}`)

const kinds = [...new Set(scored.map(({ kind }) => kind))]
console.log(
  table(
    ['kind', ...halves.map(({ half }) => `marked, ${half}`)],
    kinds.map(kind => [
      kind,
      ...halves.map(({ rows: all }) => {
        const ofKind = all.filter(row => row.kind === kind)
        return `${ofKind.filter(({ support }) => support < SUPPORT_MIN).length} of ${ofKind.length}`
      }),
    ]),
  ),
)
console.log(
  `check of ${answerSentences} sentences, ms: p50 ${median(times).toFixed(0)}, p95 ${quantile(times, 0.95).toFixed(0)}`,
)
if (process.argv.includes('--list'))
  for (const { half, kind, text, isSupported, support } of scored)
    if (support < SUPPORT_MIN === isSupported) console.log(half, kind, support.toFixed(2), text)
