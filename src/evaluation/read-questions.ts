import { existsSync, statSync } from 'node:fs'
import { z } from 'zod'
import { fingerprintJson } from '../base/fingerprint-json.ts'
import { parseJson } from '../base/parse-json.ts'
import { readTextUpTo, readYaml } from '../base/read-yaml.ts'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import { gradeMax, type JudgedQuestion, type Judgment } from './question.ts'
import { readBeirQuestions } from './read-beir-questions.ts'

const sizeBytesMax = 16 * 1_048_576

const text = z.string().trim().min(1)
const questionText = text.max(limits.searchTextChars)
const judgment = {
  document: text,
  heading: text.optional(),
  text: text.optional(),
  grade: z.int().min(0).max(gradeMax).default(gradeMax),
}
const Answer = z.union([
  text.transform(document => ({ document, grade: gradeMax })),
  z.strictObject(judgment),
])
const QuestionsFile = z
  .array(z.strictObject({ question: questionText, answers: z.array(Answer).min(1) }))
  .min(1)
/** Line of a file of judgments. Other fields are ignored. */
const JudgmentLine = z.object({ ...judgment, question: questionText, grade: z.int().min(0).max(gradeMax) })
export type JudgmentLine = z.output<typeof JudgmentLine>

/** Questions of a file or folder. */
export interface QuestionSet {
  readonly questions: readonly JudgedQuestion[]
  /** Hash of the questions and their judgments. */
  readonly hash: string
}

/**
 * Reads questions with judgments: a folder in BEIR format, a `.jsonl` file of judgments, or a YAML file.
 *
 * @param split  split of the folder; by default `test`, or else the only one
 * @throws WbError validation_error  a file is missing or invalid; the message contains the place
 * @see docs/evaluation.md
 */
export function readQuestions(path: string, split?: string): QuestionSet {
  const questions = readByFormat(path, split)
  return { questions, hash: fingerprintJson(questions) }
}

function readByFormat(path: string, split: string | undefined): JudgedQuestion[] {
  if (!existsSync(path)) throw invalidQuestions(`${path} does not exist`)
  if (statSync(path).isDirectory()) return readBeirQuestions(path, split)
  return path.endsWith('.jsonl') ? readJudgments(path) : readQuestionsFile(path)
}

/** Reads a list of questions with `question` and `answers`. */
function readQuestionsFile(path: string): JudgedQuestion[] {
  const parsed = QuestionsFile.safeParse(readYaml(path, sizeBytesMax))
  if (!parsed.success) throw invalidQuestions(`${path}: ${describeIssue(parsed.error)}`)
  const ids = new Set<string>()
  return parsed.data.map(({ question, answers }) => {
    if (ids.has(question)) throw invalidQuestions(`${path}: this question occurs twice: ${question}`)
    ids.add(question)
    return { id: question, text: question, judgments: answers }
  })
}

/** Reads one judgment per line. A later judgment of the same passage replaces an earlier one. */
function readJudgments(path: string): JudgedQuestion[] {
  const byQuestion = new Map<string, Map<string, Judgment>>()
  for (const [index, line] of readTextUpTo(path, sizeBytesMax).split('\n').entries()) {
    if (line.trim() === '') continue
    const parsed = JudgmentLine.safeParse(parseJson(line))
    if (!parsed.success) throw invalidQuestions(`${path}:${index + 1}: ${describeIssue(parsed.error)}`)
    const { question, ...answer } = parsed.data
    const judgments = byQuestion.get(question) ?? new Map<string, Judgment>()
    byQuestion.set(question, judgments.set(passageKey(answer), answer))
  }
  return Array.from(byQuestion, ([question, judgments]) => ({
    id: question,
    text: question,
    judgments: [...judgments.values()],
  }))
}

/** Returns a key that judgments of the same passage share. */
export function passageKey({ document, heading, text }: Omit<Judgment, 'grade'>): string {
  return JSON.stringify([document, heading, text])
}

function describeIssue({ issues }: z.ZodError): string {
  // A misspelled key also makes the right one missing.
  const { path, message } = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0]!
  const [index, ...keys] = path
  const place = [...(typeof index === 'number' ? [`question ${index + 1}`] : path.slice(0, 1)), ...keys]
  return [...(place.length > 0 ? [place.map(String).join('.')] : []), message].join(': ')
}

function invalidQuestions(message: string): WbError {
  return new WbError('validation_error', message, { hint: 'See "Questions" in docs/evaluation.md.' })
}
