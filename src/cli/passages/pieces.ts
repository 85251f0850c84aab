import { displayWidth } from '../terminal/terminal-text.ts'
import type { TextRange } from './matches.ts'

/** A part of a text that is never split across lines. */
export interface Piece extends TextRange {
  /** Width in terminal columns. */
  readonly width: number
  /** True if white space precedes the piece. */
  readonly followsSpace: boolean
}

/** Characters of scripts that do not separate words with spaces. */
const unspacedScript =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u

/** Maximum length of a word that is not split after commas, in UTF-16 units. */
const unsplitMax = 40

/**
 * Splits a text at white space into words with their punctuation. Also splits long words, such as the rows of a CSV file,
 * after commas and semicolons, and for scripts without spaces, words with a dictionary.
 */
export function splitPieces(text: string): Piece[] {
  const pieces: Piece[] = []
  for (const { 0: run, index } of text.matchAll(/\S+/g))
    if (unspacedScript.test(run)) pieces.push(...splitByDictionary(run, index))
    else if (run.length > unsplitMax) pieces.push(...splitAfterCommas(run, index))
    else pieces.push(piece(run, index, true))
  return pieces
}

function piece(run: string, start: number, followsSpace: boolean): Piece {
  return { start, end: start + run.length, width: displayWidth(run), followsSpace }
}

function splitAfterCommas(run: string, offset: number): Piece[] {
  const cells = [...run.matchAll(/[^,;]*[,;]*/g)].filter(([cell]) => cell !== '')
  return cells.map(({ 0: cell, index }) => piece(cell, offset + index, index === 0))
}

/** @see Unicode UAX 29 */
function splitByDictionary(run: string, offset: number): Piece[] {
  const words = [...new Intl.Segmenter(undefined, { granularity: 'word' }).segment(run)]
  return words.map(({ segment, index }) => piece(segment, offset + index, index === 0))
}
