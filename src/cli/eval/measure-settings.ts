import pMap from 'p-map'
import type { Client } from '../../client/client.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import {
  type EvalResult,
  type EvalSettings,
  estimateMetrics,
  questionResult,
} from '../../evaluation/eval-result.ts'
import { gradeHits } from '../../evaluation/grade-hits.ts'
import type { QuestionSet } from '../../evaluation/read-questions.ts'
import { UsageError } from '../errors.ts'
import { search } from '../passages/find-passages.ts'
import { rankingOptions } from '../passages/ranking-options.ts'
import type { Output } from '../terminal/output.ts'
import { formatCounted } from '../terminal/output.ts'
import type { Progress } from '../terminal/progress.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { JudgedDocuments } from './judged-documents.ts'
import { findUnmatchedAnswers } from './unmatched-answers.ts'

/** Number of passages to request. Relevant passages below them count as not found. */
const depth = 100
const concurrentSearches = 4
const missingShown = 3
/** Length to which the text of an answer is cut in a warning. */
const shownChars = 60

/** A knowledge base, and questions with the documents that answer them. */
export interface EvalContext {
  readonly client: Client
  readonly base: KnowledgeBase
  readonly set: QuestionSet
  readonly documents: JudgedDocuments
  readonly progress: Progress
  readonly signal: AbortSignal
}

/**
 * Looks up the judged documents, and warns about answers that the knowledge base does not have.
 *
 * @throws UsageError  the knowledge base has none of them
 */
export async function openEvalContext(
  context: Omit<EvalContext, 'documents'>,
  output: Output,
): Promise<EvalContext> {
  const documents = await JudgedDocuments.load(context.client, context.base)
  const judgments = context.set.questions
    .flatMap(question => question.judgments)
    .filter(({ grade }) => grade > 0)
  const names = new Set(judgments.map(({ document }) => document))
  const located = judgments.map(judgment => documents.locate(judgment))
  const missing = new Set(
    located.flatMap(judgment => (judgment.documentIds.size === 0 ? [judgment.document] : [])),
  )
  const list = `${[...missing].slice(0, missingShown).join(', ')}${missing.size > missingShown ? ', …' : ''}`
  if (missing.size === names.size)
    throw new UsageError(
      `knowledge base ${context.base.name} has none of the documents in the answers: ${list}`,
      [
        `wb documents list ${context.base.name}`,
        'An answer names a document by its file name, source ID or ID.',
      ],
    )
  if (missing.size > 0)
    output.warn(
      `  ! knowledge base ${context.base.name} does not have ${formatCounted(missing.size, 'document')} of the answers: ${list}`,
    )
  const unmatched = await findUnmatchedAnswers(context, located)
  for (const { document, heading, text } of unmatched.slice(0, missingShown)) {
    const answer =
      heading === undefined ? `the text "${text!.slice(0, shownChars)}"` : `the heading "${heading}"`
    output.warn(plainLine(`  ! no passage of ${document} contains ${answer} of an answer`))
  }
  if (unmatched.length > missingShown)
    output.warn(`  ! also not found: ${formatCounted(unmatched.length - missingShown, 'other answer')}`)
  return { ...context, documents }
}

/** Searches for each question, and measures the rankings. */
export async function measureSettings(
  { client, base, set: { questions, hash }, documents, progress, signal }: EvalContext,
  settings: EvalSettings,
  label = 'searching',
): Promise<EvalResult> {
  const ranking = rankingOptions(settings)
  let done = 0
  const results = await pMap(
    questions,
    async ({ id, text, judgments }) => {
      const hits = await search(
        { client, base, signal, body: { text, ...ranking } },
        { topK: depth, includeCoverage: false },
      )
      progress.step({ label, done: ++done, total: questions.length, unit: 'questions' })
      const found = hits.map(({ id, payload }) => ({
        id,
        documentId: typeof payload?.documentId === 'string' ? payload.documentId : null,
        text: typeof payload?.chunkText === 'string' ? payload.chunkText : '',
      }))
      const located = judgments.map(judgment => documents.locate(judgment))
      return questionResult(id, text, gradeHits(found, located))
    },
    { concurrency: concurrentSearches, signal },
  )
  progress.end()
  return {
    kb: base.name,
    questionsHash: hash,
    settings,
    metrics: estimateMetrics(results),
    questions: results,
  }
}
