import { readFileSync } from 'node:fs'
import { join } from 'node:path'

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
  const grades = new Map<string, Map<string, number>>()
  for (const line of linesOf(folder, 'qrels/test.tsv').slice(1)) {
    const [query, document, grade] = line.split('\t')
    const ofQuery = grades.get(query!) ?? new Map<string, number>()
    grades.set(query!, ofQuery.set(document!, Number(grade)))
  }
  return grades
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

const rankingDepth = 10

/** Discounted cumulative gain, linear in the grade. */
function gain(grades: readonly number[]): number {
  return grades.slice(0, rankingDepth).reduce((sum, grade, at) => sum + grade / Math.log2(at + 2), 0)
}

/** Returns nDCG@10 and recall@10 of a ranking of document IDs, best first, by the grades of one query. */
export function qualityAt10(ranking: readonly string[], grades: ReadonlyMap<string, number>) {
  const ideal = gain([...grades.values()].sort((a, b) => b - a))
  const relevant = [...grades.values()].filter(grade => grade > 0).length
  const found = ranking.slice(0, rankingDepth).filter(id => (grades.get(id) ?? 0) > 0).length
  return {
    ndcg: ideal ? gain(ranking.map(id => grades.get(id) ?? 0)) / ideal : 0,
    recall: relevant ? found / relevant : 0,
  }
}
