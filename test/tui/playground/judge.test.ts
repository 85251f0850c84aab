import { expect, test } from 'vitest'
import { quotePassage } from '../../../src/evaluation/judgment-file.ts'
import { gradesOf } from '../../../src/tui/playground/judge.ts'
import { base, documentNamed, PlaygroundDriver, passage } from './playground-driver.ts'

const esc = '\x1b'
const judgment = { question: 'heat', document: 'heat.md', text: 'what a says', grade: 2 }

function judged(question: string, text = judgment.text): string {
  const play = new PlaygroundDriver({
    bases: [base('papers')],
    grades: gradesOf(new Map([['papers', [judgment]]])),
  }).type(question)
  const results = { passages: [passage('a', { text, document: documentNamed('heat.md') })], tookMs: 1 }
  return play.event({ type: 'searched', serial: play.state.serial, results }).screen
}

test('shows stored grades of the same question, document and text', () => {
  expect(judged('heat')).toContain('grade 2')
  for (const screen of [judged('cold'), judged('heat', 'other text')]) expect(screen).not.toContain('grade')
})

test('a key from 0 to 4 judges in the settings, and types in the question', () => {
  const play = new PlaygroundDriver().type('heat').answer('a').type('4')
  expect(play.screen).toContain('heat4')
  expect(new PlaygroundDriver().type(esc).type('4').state.notice).toBe('search first, then judge a passage')
  expect(new PlaygroundDriver().type(`heat${esc}?`).screen).toContain('judges the selected passage')
})

test('quotes whole words from the middle of a long passage, and a short passage as a whole', () => {
  const words = Array.from({ length: 100 }, (_, index) => `word${index}`)
  const quote = quotePassage(words.join('\n '))
  expect(quote.length).toBeLessThanOrEqual(120)
  expect(quote.split(' ').every(word => words.includes(word))).toBe(true)
  expect(words.join(' ').indexOf(quote)).toBeGreaterThan(200)
  expect(quotePassage(' a\n b ')).toBe('a b')
  expect(quotePassage('x'.repeat(500)).length).toBeGreaterThan(100)
})
