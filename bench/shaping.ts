/**
 * Measures what diversity, grouping and neighbors do to the first ten results, over HTTP with the defaults: on the questions of
 * one half, on Cranfield, and on whole pages, for which it also measures how much of the answer the first three results contain.
 *
 * npm run bench:shaping -- [tune|held-out]
 */
import { groupBy } from '../src/base/group-by.ts'
import {
  cranfield,
  qualityAt10,
  questionFolders,
  readEntries,
  readGrades,
  readQuestions,
  reciprocalRank,
} from '../test/harness/beir.ts'
import { ingestCorpus } from './beir-base.ts'
import { call, createBase, remove, type Server, startServer, untilFitted } from './server.ts'
import { mean, median, table } from './statistics.ts'

const half = process.argv[2] ?? 'held-out'
const options: Record<string, object> = {
  none: {},
  'diversity 0.1': { diversity: 0.1 },
  'diversity 0.2': { diversity: 0.2 },
  'diversity 0.3': { diversity: 0.3 },
  'diversity 0.5': { diversity: 0.5 },
  'diversity 0.7': { diversity: 0.7 },
  group: { groupBy: 'document' },
  'group of 2': { groupBy: 'document', perGroup: 2 },
  'neighbors 1': { neighbors: 1 },
  'neighbors 2': { neighbors: 2 },
  'group, neighbors 1': { groupBy: 'document', neighbors: 1 },
  recency: { boosts: [{ recency: { halfLifeDays: 30 }, factor: 2 }] },
}
/** Number of best results in which the answer is looked up. */
const answerResults = 3

interface Hit {
  payload: { documentId: string; chunkText: string }
}

interface Measured {
  readonly mrr: number
  readonly ndcg: number
  readonly recall: number
  readonly documents: number
  readonly chars: number
  readonly ms: number
  /** Time beyond that of the same search without options. */
  readonly addedMs: number
  /** Share of the sentences of the answer in the first results. */
  readonly answer: number
}

interface Question {
  readonly text: string
  readonly grades: ReadonlyMap<string, number>
  /** Sentences of the sections that answer it. */
  readonly sentences: readonly string[]
}

/** Searches for each question with each option in turn, so that other work on the machine affects all options alike. */
async function measure(
  server: Server,
  base: string,
  names: Map<string, string>,
  questions: readonly Question[],
) {
  const rows = new Map<string, Measured[]>()
  for (const { text, grades, sentences } of questions) {
    // The first search of a question warms up caches.
    await call(server, 'POST', `${base}/search`, { text })
    let plainMs = 0
    for (const [name, option] of Object.entries(options)) {
      const started = performance.now()
      const hits = await call<Hit[]>(server, 'POST', `${base}/search`, { text, topK: 10, ...option })
      const ms = performance.now() - started
      if (name === 'none') plainMs = ms
      const ranking = [...new Set(hits.map(hit => names.get(hit.payload.documentId)!))]
      const texts = hits.map(hit => hit.payload.chunkText)
      const shown = texts.slice(0, answerResults).join('\n')
      const measured = {
        mrr: reciprocalRank(ranking, grades),
        ...qualityAt10(ranking, grades),
        documents: ranking.length,
        chars: texts.join('').length,
        ms,
        addedMs: ms - plainMs,
        answer: mean(sentences.map(sentence => (shown.includes(sentence) ? 1 : 0))),
      }
      rows.set(name, [...(rows.get(name) ?? []), measured])
    }
  }
  return rows
}

async function withCorpus<T>(
  folder: string,
  work: (server: Server, base: string, names: Map<string, string>) => Promise<T>,
) {
  const server = await startServer(undefined, { env: { WB_SEMANTIC_SEARCH: 'on' } })
  try {
    const base = await createBase(server)
    const names = await ingestCorpus(server, base, folder)
    await untilFitted(server, base, 600)
    return await work(server, base, names)
  } finally {
    await server.stop()
    remove(server.dataDir)
  }
}

/** Ingests the sections of each page as one document, and measures questions whose answer is in the page. */
async function measurePages(folder: string) {
  const server = await startServer(undefined, { env: { WB_SEMANTIC_SEARCH: 'on' } })
  const pageOf = (id: string) => id.replace(/#.*/, '')
  const sections = readEntries(folder, 'corpus.jsonl')
  const textOf = new Map(sections.map(({ _id, text }) => [_id, text]))
  try {
    const base = await createBase(server)
    const names = new Map<string, string>()
    for (const [page, group] of groupBy(sections, ({ _id }) => pageOf(_id))) {
      const text = group.map(section => `## ${section.title}\n\n${section.text}`).join('\n\n')
      const { document } = await call<{ document: { documentId: string } }>(
        server,
        'POST',
        `${base}/ingest`,
        {
          text,
          sourceDocId: page,
        },
      )
      names.set(document.documentId, page)
    }
    await untilFitted(server, base, 600)
    const questions = questionsOf(folder).map(({ text, grades }) => {
      const pages = new Map<string, number>()
      for (const [id, grade] of grades) pages.set(pageOf(id), Math.max(grade, pages.get(pageOf(id)) ?? 0))
      const answers = [...grades].flatMap(([id, grade]) => (grade > 1 ? [textOf.get(id) ?? ''] : []))
      return {
        text,
        grades: pages,
        sentences: answers.flatMap(answer => answer.split(/(?<=\.)\s+|\n+/)).filter(Boolean),
      }
    })
    return await measure(server, base, names, questions)
  } finally {
    await server.stop()
    remove(server.dataDir)
  }
}

function questionsOf(folder: string): Question[] {
  const grades = readGrades(folder)
  return readQuestions(folder)
    .filter(({ metadata }) => folder === cranfield || metadata.half === half)
    .flatMap(({ _id, text }) => {
      const judged = grades.get(_id)
      return judged ? [{ text, grades: judged, sentences: [] }] : []
    })
}

function print(title: string, results: ReadonlyMap<string, readonly Measured[]>) {
  const average = (all: readonly Measured[], key: keyof Measured) => mean(all.map(one => one[key]))
  const heads = [
    'option',
    'MRR',
    'nDCG@10',
    'recall@10',
    'answer@3',
    'documents',
    'characters',
    'p50 ms',
    'added p50 ms',
  ]
  const rows = Array.from(results, ([name, all]) => [
    name,
    ...(['mrr', 'ndcg', 'recall', 'answer'] as const)
      .map(key => average(all, key))
      .map(value => (Number.isNaN(value) ? '–' : value.toFixed(3))),
    average(all, 'documents').toFixed(1),
    average(all, 'chars').toFixed(0),
    median(all.map(one => one.ms)).toFixed(1),
    median(all.map(one => one.addedMs)).toFixed(1),
  ])
  console.log(`\n${title}\n${table(heads, rows)}`)
}

const sections = new Map<string, Measured[]>()
for (const folder of questionFolders) {
  const measured = await withCorpus(folder, (server, base, names) =>
    measure(server, base, names, questionsOf(folder)),
  )
  for (const [name, results] of measured) sections.set(name, [...(sections.get(name) ?? []), ...results])
}
print(`sections, half ${half}`, sections)
print(`whole pages of the product documentation, half ${half}`, await measurePages(questionFolders.at(-1)!))
print(
  'Cranfield',
  await withCorpus(cranfield, (server, base, names) => measure(server, base, names, questionsOf(cranfield))),
)
