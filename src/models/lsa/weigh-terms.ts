import { terms } from '../../base/words.ts'
import type { SparseRows } from './panels.ts'

/** A passage to embed. `title` is the title of its document. */
export interface EmbeddedPassage {
  title: string | null
  text: string
}

const titleWeight = 2
/** Minimum rarity. It is not zero, so that passages with only very common terms do not have an all-zero vector. */
const rarityMin = 0.01
const vocabularyMax = 60_000
/**
 * Minimum number of passages from which terms that occur in a single passage are omitted. They do not connect passages, and
 * take time and space.
 */
const singlesPassagesMin = 256

/** The terms of a set of passages, and a matrix with one row of unit length per passage and one column per term. */
export interface TermMatrix {
  terms: string[]
  /** Rarity of each term: ln((N + 1) / (passages with the term + 1)). */
  rarities: Float64Array
  matrix: SparseRows
}

/** Counts the terms of a passage. An occurrence in the title counts twice. */
export function countTerms({ title, text }: EmbeddedPassage): Map<string, number> {
  const counts = new Map<string, number>()
  for (const term of terms(text)) counts.set(term, (counts.get(term) ?? 0) + 1)
  if (title) for (const term of terms(title)) counts.set(term, (counts.get(term) ?? 0) + titleWeight)
  return counts
}

/** Returns the weight of a term that occurs `count` times in a passage, not including the rarity of the term. */
export const frequencyWeight = (count: number) => Math.log(1 + count)

/**
 * Term counts of passages. `columns` and `counts` have one entry per passage and distinct term.
 * `documentFrequencies` contains, for each term, the number of passages with the term.
 */
interface TermCounts {
  names: string[]
  documentFrequencies: number[]
  starts: number[]
  columns: number[]
  counts: number[]
}

function countPassages(passages: readonly EmbeddedPassage[]): TermCounts {
  const ids = new Map<string, number>()
  const result: TermCounts = { names: [], documentFrequencies: [], starts: [0], columns: [], counts: [] }
  for (const passage of passages) {
    for (const [term, count] of countTerms(passage)) {
      let id = ids.get(term)
      if (id === undefined) {
        id = result.names.push(term) - 1
        ids.set(term, id)
        result.documentFrequencies.push(0)
      }
      result.documentFrequencies[id]!++
      result.columns.push(id)
      result.counts.push(count)
    }
    result.starts.push(result.columns.length)
  }
  return result
}

/**
 * Returns the IDs of the terms to keep. If there are too many, keeps those that occur in the most passages. If there are
 * enough passages, omits terms that occur in a single passage.
 */
function chooseTerms(documentFrequencies: readonly number[], passageCount: number): number[] {
  const frequencyMin = passageCount >= singlesPassagesMin ? 2 : 1
  const chosen = documentFrequencies.flatMap((passages, id) => (passages >= frequencyMin ? [id] : []))
  if (chosen.length <= vocabularyMax) return chosen
  return chosen
    .sort((a, b) => documentFrequencies[b]! - documentFrequencies[a]! || a - b)
    .slice(0, vocabularyMax)
}

/**
 * Counts and weighs the terms of passages. Reads each text once. Needs memory for the distinct terms of each passage.
 */
export function weighTerms(passages: readonly EmbeddedPassage[]): TermMatrix {
  const { names, documentFrequencies, starts, columns, counts } = countPassages(passages)
  const chosen = chooseTerms(documentFrequencies, passages.length)
  const columnOfId = new Int32Array(names.length).fill(-1)
  chosen.forEach((id, column) => {
    columnOfId[id] = column
  })
  const rarities = Float64Array.from(chosen, id =>
    Math.max(rarityMin, Math.log((passages.length + 1) / (documentFrequencies[id]! + 1))),
  )
  const entryCount = columns.reduce((sum, id) => sum + (columnOfId[id]! < 0 ? 0 : 1), 0)
  const matrix: SparseRows = {
    rows: passages.length,
    columns: chosen.length,
    starts: new Uint32Array(passages.length + 1),
    indices: new Uint32Array(entryCount),
    values: new Float64Array(entryCount),
  }
  let entry = 0
  for (let row = 0; row < passages.length; row++) {
    const start = entry
    let squaredLength = 0
    for (let at = starts[row]!; at < starts[row + 1]!; at++) {
      const column = columnOfId[columns[at]!]!
      if (column < 0) continue
      const value = frequencyWeight(counts[at]!) * rarities[column]!
      matrix.indices[entry] = column
      matrix.values[entry++] = value
      squaredLength += value * value
    }
    for (let at = start; at < entry; at++) matrix.values[at]! /= Math.sqrt(squaredLength)
    matrix.starts[row + 1] = entry
  }
  return { terms: chosen.map(id => names[id]!), rarities, matrix }
}
