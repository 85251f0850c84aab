import { basename } from 'node:path'
import { describe, expect, test } from 'vitest'
import { terms } from '../../src/base/words.ts'
import {
  type BeirEntry,
  type Question,
  questionFolders,
  readEntries,
  readGrades,
  readQuestions,
} from '../harness/beir.ts'

const questionsMin = 50
const sectionsMin = 80
/** Shares of the questions of each kind. */
const shares = { plain: [0.25, 0.4], rephrased: [0.45, 0.6], paragraph: [0.1, 0.25] } as const
const paragraphWords = [60, 120] as const
/** Share of the words of a rephrased question that a section with its answer may contain. */
const commonWordsMax = 0.25
/** Share of the words of a plain question that one of the sections with its answer contains. */
const commonWordsMin = 0.6

interface Answered extends Question {
  readonly answers: readonly BeirEntry[]
}

/** Returns the share of the words of a question that a section contains, without stop words and endings. */
function commonWords(question: Question, section: BeirEntry): number {
  const asked = new Set(terms(question.text))
  const written = new Set(terms(`${section.title} ${section.text}`))
  return [...asked].filter(term => written.has(term)).length / asked.size
}

function isWithin(value: number, [min, max]: readonly [number, number]): boolean {
  return value >= min && value <= max
}

describe.each(questionFolders.map(folder => ({ name: basename(folder), folder })))('$name', ({ folder }) => {
  const sections = readEntries(folder, 'corpus.jsonl')
  const sectionById = new Map(sections.map(section => [section._id, section]))
  const questions = readQuestions(folder)
  const grades = readGrades(folder)
  const answered: Answered[] = questions.map(question => ({
    ...question,
    answers: [...(grades.get(question._id) ?? [])].flatMap(([id, grade]) =>
      grade === 2 ? [sectionById.get(id)!] : [],
    ),
  }))
  const ofKind = (kind: Question['metadata']['kind']) =>
    answered.filter(question => question.metadata.kind === kind)

  test('each section and question has its own ID and text', () => {
    for (const entries of [sections, questions]) {
      expect(new Set(entries.map(entry => entry._id)).size).toBe(entries.length)
      expect(new Set(entries.map(entry => entry.text)).size).toBe(entries.length)
      expect(entries.filter(entry => entry.text.trim() === '')).toEqual([])
    }
    expect(sections.length).toBeGreaterThanOrEqual(sectionsMin)
    expect(questions.length).toBeGreaterThanOrEqual(questionsMin)
  })

  test('each judgment grades a section for a question with 1 or 2', () => {
    expect([...grades.keys()].sort()).toEqual(questions.map(question => question._id).sort())
    for (const judged of grades.values()) {
      expect([...judged.keys()].filter(id => !sectionById.has(id))).toEqual([])
      expect([...judged.values()].filter(grade => grade !== 1 && grade !== 2)).toEqual([])
    }
    expect(answered.filter(question => question.answers.length === 0)).toEqual([])
  })

  test.each(Object.entries(shares))('has enough %s questions, in two halves of equal size', (kind, range) => {
    const found = ofKind(kind as Question['metadata']['kind'])
    expect(found.length / questions.length).toSatisfy((share: number) => isWithin(share, range))
    const ofHalf = (half: string) => found.filter(({ metadata }) => metadata.half === half).length
    expect(ofHalf('tune') + ofHalf('held-out')).toBe(found.length)
    expect(ofHalf('tune')).toBe(ofHalf('held-out'))
  })

  test('rephrased questions have few words of their answers, and plain questions have most', () => {
    const most = (question: Answered) =>
      Math.max(...question.answers.map(answer => commonWords(question, answer)))
    expect(ofKind('rephrased').filter(question => most(question) > commonWordsMax)).toEqual([])
    expect(ofKind('plain').filter(question => most(question) < commonWordsMin)).toEqual([])
  })

  test('paragraphs have 60 to 120 words', () => {
    const lengths = ofKind('paragraph').map(({ text }) => text.split(/\s+/).length)
    expect(lengths.filter(length => !isWithin(length, paragraphWords))).toEqual([])
  })
})
