import { existsSync, lstatSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import { parseJson } from '../base/parse-json.ts'
import { readTextUpTo } from '../base/read-yaml.ts'
import { WbError } from '../contract/errors.ts'
import type { EvalResult } from './eval-result.ts'

const sizeBytesMax = 64 * 1_048_576

const share = z.number().min(0).max(1)
const metricShares = { 'ndcg@10': share, 'recall@10': share, 'mrr@10': share, map: share }
const estimate = z.object({ value: share, low: share, high: share })
const ResultFile = z.object({
  kb: z.string(),
  questionsHash: z.string(),
  settings: z.object({
    mode: z.enum(['hybrid', 'lexical', 'vector']).optional(),
    lexicalWeight: share.optional(),
    rerank: z.boolean().optional(),
  }),
  metrics: z.object({ 'ndcg@10': estimate, 'recall@10': estimate, 'mrr@10': estimate, map: estimate }),
  questions: z
    .array(
      z.object({
        id: z.string(),
        question: z.string(),
        rank: z.int().positive().nullable(),
        ...metricShares,
      }),
    )
    .min(1),
})

/**
 * Reads a result from a file: the output of `wb eval run --json`, or a lockfile.
 *
 * @throws WbError validation_error  the file is missing or invalid
 */
export function readResult(path: string): EvalResult {
  const hint = 'Write the file with wb eval run QUESTIONS --json > FILE.'
  if (!existsSync(path)) throw new WbError('validation_error', `${path} does not exist`, { hint })
  const parsed = ResultFile.safeParse(parseJson(readTextUpTo(path, sizeBytesMax)))
  if (!parsed.success)
    throw new WbError('validation_error', `${path} is not a result of wb eval run`, { hint })
  return parsed.data
}

/**
 * Writes a result to a file with a line per question, so that version control shows which questions changed.
 *
 * @throws WbError validation_error  the path is a symbolic link, which could lead out of the folder
 */
export function writeResult(path: string, { questions, ...result }: EvalResult): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink())
    throw new WbError('validation_error', `${path} is a symbolic link`, {
      hint: 'Name a regular file with --lockfile.',
    })
  const head = JSON.stringify(result, undefined, 2).slice(0, -2)
  const lines = questions.map(question => `    ${JSON.stringify(question)}`)
  writeFileSync(path, `${head},\n  "questions": [\n${lines.join(',\n')}\n  ]\n}\n`)
}
