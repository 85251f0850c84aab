import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { firstRelevantRank, measureRanking } from '../../src/evaluation/metrics.ts'
import { readQrels } from '../../src/evaluation/read-beir-questions.ts'

/** The folder of the Cranfield collection in BEIR form: `corpus.jsonl`, `queries.jsonl` and `qrels/test.tsv`. */
export const cranfield = join(import.meta.dirname, '../fixtures/cranfield')

/** Folders of the project's own collections, in the same form. */
export const questionFolders = ['guide', 'handbook', 'product'].map(name =>
  join(import.meta.dirname, '../fixtures/questions', name),
)

/** A document or a query of a collection in BEIR form. */
export interface BeirEntry {
  readonly _id: string
  /** Present for documents only. */
  readonly title: string
  readonly text: string
}

/** A question of one of the project's own collections. */
export interface Question extends BeirEntry {
  readonly metadata: {
    readonly kind: 'plain' | 'rephrased' | 'paragraph'
    /** Weights are chosen on one half and reported on the other. */
    readonly half: 'tune' | 'held-out'
  }
}

function linesOf(folder: string, name: string): string[] {
  return readFileSync(join(folder, name), 'utf8')
    .split('\n')
    .filter(line => line.trim())
}

/** Returns the entries of a file of a collection, in order. */
export function readEntries(folder: string, name: 'corpus.jsonl' | 'queries.jsonl'): BeirEntry[] {
  return linesOf(folder, name).map(line => JSON.parse(line) as BeirEntry)
}

/** Returns the questions of one of the project's own collections, in order. */
export function readQuestions(folder: string): Question[] {
  return linesOf(folder, 'queries.jsonl').map(line => JSON.parse(line) as Question)
}

/** Returns the grade of each judged document by query ID and document ID; 0 is irrelevant. */
export function readGrades(folder: string): Map<string, Map<string, number>> {
  return readQrels(join(folder, 'qrels/test.tsv'))
}

/** Returns the IDs of the relevant documents by query ID. Queries without relevant documents are omitted. */
export function readRelevantIds(folder: string): Map<string, Set<string>> {
  const relevant = new Map<string, Set<string>>()
  for (const [query, grades] of readGrades(folder)) {
    const ids = [...grades].flatMap(([id, grade]) => (grade > 0 ? [id] : []))
    if (ids.length > 0) relevant.set(query, new Set(ids))
  }
  return relevant
}

/** Returns the reciprocal rank of the first relevant document; 0 if none is in the ranking. */
export function reciprocalRank(ranking: readonly string[], grades: ReadonlyMap<string, number>): number {
  const rank = firstRelevantRank(ranking.map(id => grades.get(id) ?? 0))
  return rank === undefined ? 0 : 1 / rank
}

/** Returns nDCG@10 and recall@10 of a ranking of document IDs, best first, by the grades of one query. */
export function qualityAt10(ranking: readonly string[], grades: ReadonlyMap<string, number>) {
  const metrics = measureRanking({
    ranked: ranking.map(id => grades.get(id) ?? 0),
    relevant: [...grades.values()].filter(grade => grade > 0),
  })
  return { ndcg: metrics['ndcg@10'], recall: metrics['recall@10'] }
}
