import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A document, or a question, of a collection in BEIR form. */
export interface Entry {
  readonly _id: string
  /** Of documents. */
  readonly title: string
  readonly text: string
}

function linesOf(folder: string, name: string): string[] {
  return readFileSync(join(folder, name), 'utf8')
    .split('\n')
    .filter(line => line.trim())
}

/** The entries of a file of a collection, as they are read line by line. */
export function entriesOf(folder: string, name: 'corpus.jsonl' | 'queries.jsonl'): Entry[] {
  return linesOf(folder, name).map(line => JSON.parse(line) as Entry)
}

/** The documents that are relevant to each question, by ids. */
export function relevantIn(folder: string): Map<string, Set<string>> {
  const relevant = new Map<string, Set<string>>()
  for (const line of linesOf(folder, 'qrels.tsv')) {
    const [query, document, grade] = line.split('\t')
    if (Number(grade) > 0) relevant.set(query!, (relevant.get(query!) ?? new Set()).add(document!))
  }
  return relevant
}
