import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '../base/is-object.ts'
import { parseJson } from '../base/parse-json.ts'
import { readTextUpTo } from '../base/read-yaml.ts'
import { WbError } from '../contract/errors.ts'
import type { JudgedQuestion } from './question.ts'

const splitDefault = 'test'
const sizeBytesMax = 64 * 1_048_576

/**
 * Reads the questions of a folder in BEIR format: `queries.jsonl`, and the judgments of a split in `qrels`. Questions
 * without judgments are left out.
 *
 * @param split  name of a file in `qrels`, without extension; by default `test`, or else the only one
 * @throws WbError validation_error  a file is missing or invalid
 * @see https://github.com/beir-cellar/beir/wiki/Load-your-custom-dataset
 */
export function readBeirQuestions(folder: string, split?: string): JudgedQuestion[] {
  const grades = readQrels(join(folder, 'qrels', `${split ?? findSplit(folder)}.tsv`))
  const path = join(folder, 'queries.jsonl')
  return readLines(path).flatMap((line, index): JudgedQuestion[] => {
    const entry = parseJson(line)
    if (!isObject(entry) || typeof entry.text !== 'string' || entry._id === undefined)
      throw invalidFile(`${path}:${index + 1}: must be a JSON object with _id and text`)
    const id = String(entry._id)
    const judgments = Array.from(grades.get(id) ?? [], ([document, grade]) => ({ document, grade }))
    return judgments.length === 0 ? [] : [{ id, text: entry.text, judgments }]
  })
}

/** Returns `test` if the folder has it, or else the only split. */
function findSplit(folder: string): string {
  if (existsSync(join(folder, 'qrels', `${splitDefault}.tsv`))) return splitDefault
  const splits = readFolder(join(folder, 'qrels')).flatMap(name => /^(.+)\.tsv$/.exec(name)?.[1] ?? [])
  return splits.length === 1 ? splits[0]! : splitDefault
}

function readFolder(path: string): string[] {
  return existsSync(path) ? readdirSync(path) : []
}

/**
 * Reads judgments: lines of query ID, document ID and grade, separated by tabs, after a line of headings. Negative grades
 * count as 0.
 *
 * @returns grades by document ID, by query ID
 * @throws WbError validation_error  the file is missing or invalid
 */
export function readQrels(path: string): Map<string, Map<string, number>> {
  const grades = new Map<string, Map<string, number>>()
  for (const [index, line] of readLines(path).entries()) {
    const [query, document, grade] = line.split('\t')
    const value = Number(grade ?? Number.NaN)
    if (Number.isNaN(value) || !document) {
      if (index === 0) continue // headings
      throw invalidFile(`${path}:${index + 1}: must be query ID, document ID and grade, separated by tabs`)
    }
    const ofQuery = grades.get(query!) ?? new Map<string, number>()
    grades.set(query!, ofQuery.set(document, Math.max(0, value)))
  }
  return grades
}

/** Returns the lines of a file that are not blank. */
function readLines(path: string): string[] {
  if (!existsSync(path))
    throw new WbError('validation_error', `${path} does not exist`, {
      hint: 'A folder in BEIR format has queries.jsonl and qrels/test.tsv.',
    })
  return readTextUpTo(path, sizeBytesMax)
    .split('\n')
    .flatMap(line => line.trim() || [])
}

function invalidFile(message: string): WbError {
  return new WbError('validation_error', message, { hint: 'See docs/evaluation.md.' })
}
