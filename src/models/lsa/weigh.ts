import { terms } from '../../base/words.ts'
import type { SparseRows } from './panels.ts'

/** Text to embed. The title of a document counts for each of its passages. */
export interface EmbeddedPassage {
  title: string | null
  text: string
}

const titleWeight = 2
/** Minimum rarity. A term in every passage still distinguishes a passage from an empty one. */
const rarityMin = 0.01
const vocabularyMax = 60_000
/**
 * Number of passages from which terms of a single passage are left out, because they only cost time and
 * space.
 */
const singlesPassagesMax = 256

/** Terms of a set of passages, and the passages as rows of unit length over these terms. */
export interface TermMatrix {
  terms: string[]
  /** Rarity of each term: ln((N + 1) / (passages with the term + 1)). */
  rarities: Float64Array
  matrix: SparseRows
}

/** Counts the terms of a passage: 1 for each occurrence in the text, 2 for each in the title. */
export function countTerms({ title, text }: EmbeddedPassage): Map<string, number> {
  const counts = new Map<string, number>()
  for (const term of terms(text)) counts.set(term, (counts.get(term) ?? 0) + 1)
  if (title) for (const term of terms(title)) counts.set(term, (counts.get(term) ?? 0) + titleWeight)
  return counts
}

/** Returns the weight of a term in its passage, before its rarity is applied. */
export const frequencyWeight = (count: number) => Math.log(1 + count)

/**
 * Term counts of passages, with one entry per passage and term. `spread` is the number of passages with a
 * term.
 */
interface TermCounts {
  names: string[]
  spread: number[]
  starts: number[]
  columns: number[]
  counts: number[]
}

function countPassages(passages: readonly EmbeddedPassage[]): TermCounts {
  const ids = new Map<string, number>()
  const counted: TermCounts = { names: [], spread: [], starts: [0], columns: [], counts: [] }
  for (const passage of passages) {
    for (const [term, times] of countTerms(passage)) {
      let id = ids.get(term)
      if (id === undefined) {
        id = counted.names.push(term) - 1
        ids.set(term, id)
        counted.spread.push(0)
      }
      counted.spread[id]!++
      counted.columns.push(id)
      counted.counts.push(times)
    }
    counted.starts.push(counted.columns.length)
  }
  return counted
}

/**
 * Returns the terms to keep, those in the most passages first if there are too many. With enough passages,
 * terms of a single passage are dropped, because they relate nothing.
 */
function chooseTerms(spread: readonly number[], passageCount: number): number[] {
  const spreadMin = passageCount >= singlesPassagesMax ? 2 : 1
  const chosen = spread.flatMap((passages, id) => (passages >= spreadMin ? [id] : []))
  if (chosen.length <= vocabularyMax) return chosen
  return chosen.sort((a, b) => spread[b]! - spread[a]! || a - b).slice(0, vocabularyMax)
}

/**
 * Counts and weighs the terms of passages. Reads the text once. Memory grows with the number of distinct
 * entries.
 */
export function weighTerms(passages: readonly EmbeddedPassage[]): TermMatrix {
  const { names, spread, starts, columns, counts } = countPassages(passages)
  const chosen = chooseTerms(spread, passages.length)
  const places = new Int32Array(names.length).fill(-1)
  chosen.forEach((id, place) => {
    places[id] = place
  })
  const rarities = Float64Array.from(chosen, id =>
    Math.max(rarityMin, Math.log((passages.length + 1) / (spread[id]! + 1))),
  )
  const size = columns.reduce((sum, id) => sum + (places[id]! < 0 ? 0 : 1), 0)
  const matrix: SparseRows = {
    rows: passages.length,
    columns: chosen.length,
    starts: new Uint32Array(passages.length + 1),
    indices: new Uint32Array(size),
    values: new Float64Array(size),
  }
  let filled = 0
  for (let row = 0; row < passages.length; row++) {
    const start = filled
    let squares = 0
    for (let at = starts[row]!; at < starts[row + 1]!; at++) {
      const place = places[columns[at]!]!
      if (place < 0) continue
      const value = frequencyWeight(counts[at]!) * rarities[place]!
      matrix.indices[filled] = place
      matrix.values[filled++] = value
      squares += value * value
    }
    for (let at = start; at < filled; at++) matrix.values[at]! /= Math.sqrt(squares)
    matrix.starts[row + 1] = filled
  }
  return { terms: chosen.map(id => names[id]!), rarities, matrix }
}
