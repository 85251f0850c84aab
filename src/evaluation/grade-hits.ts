import type { GradedRanking } from './metrics.ts'
import type { Judgment } from './question.ts'

/** A passage that a search found. */
export interface FoundPassage {
  readonly id: string
  /** Null for a record without a document. */
  readonly documentId: string | null
  readonly text: string
}

/** A judgment whose document was looked up in the knowledge base. */
export interface LocatedJudgment extends Judgment {
  /** Documents that match the judgment; empty if the knowledge base has none. */
  readonly documentIds: ReadonlySet<string>
}

/**
 * Grades the results of a search.
 *
 * If all relevant judgments are about documents, the ranking contains each document once, at its first passage.
 * Otherwise it contains passages. A passage with several answers counts once for each, and a passage whose answers were all
 * found earlier is left out.
 */
export function gradeHits(
  hits: readonly FoundPassage[],
  judgments: readonly LocatedJudgment[],
): GradedRanking {
  const relevant = judgments.filter(({ grade }) => grade > 0).sort((a, b) => b.grade - a.grade)
  const ranksDocuments = relevant.every(({ heading, text }) => heading === undefined && text === undefined)
  const found = new Set<LocatedJudgment>()
  const irrelevant = new Set<string>()
  const ranked: number[] = []
  for (const hit of hits) {
    const answers = relevant.filter(judgment => isAnswer(hit, judgment))
    const key = (ranksDocuments ? hit.documentId : undefined) ?? hit.id
    if (answers.length === 0 && !irrelevant.has(key)) {
      irrelevant.add(key)
      ranked.push(0)
    }
    for (const answer of answers) {
      if (!found.has(answer)) ranked.push(answer.grade)
      found.add(answer)
    }
  }
  return { ranked, relevant: relevant.map(({ grade }) => grade) }
}

/** Returns true if a passage is the answer that a judgment describes. */
export function isAnswer(hit: FoundPassage, { documentIds, heading, text }: LocatedJudgment): boolean {
  return (
    hit.documentId !== null &&
    documentIds.has(hit.documentId) &&
    (text === undefined || simplify(hit.text).includes(simplify(text))) &&
    (heading === undefined || hit.text.split('\n').some(line => headingOf(line) === headingOf(heading)))
  )
}

/** Returns the text in lower case, with single spaces. */
function simplify(text: string): string {
  return text.toLowerCase().replace(/\s+/g, ' ').trim()
}

/** Returns a line without the marks of a Markdown heading. */
function headingOf(line: string): string {
  return simplify(line.replace(/^\s*#{1,6}\s+|\s+#+\s*$/g, ''))
}
