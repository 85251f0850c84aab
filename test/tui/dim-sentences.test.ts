import { expect, test } from 'vitest'
import { dimSentences } from '../../src/tui/markdown/dim-sentences.ts'
import { renderText } from '../../src/tui/markdown/render.ts'

/** Renders a text with dim parts in angle brackets. */
function dimmed(text: string, sentences: readonly string[], width = 30): string[] {
  return dimSentences(renderText(text, width), sentences).map(line =>
    line.map(({ text: part, tones }) => (tones.includes('dim') ? `<${part}>` : part)).join(''),
  )
}

test('dims sentences that are wrapped, with marks and citations, and nothing else', () => {
  const invented = 'They are **paid** in gold [1].'
  expect(dimmed(`Refunds are due. ${invented} So it is.`, [invented])).toEqual([
    'Refunds are due. <They are paid>',
    '<in gold ><[1]><.> So it is.',
  ])
  expect(dimmed(`Refunds are due.\n\n1. ${invented}`, [invented])[2]).toBe(
    '<1. They are paid in gold ><[1]><.>',
  )
})

test('leaves lines unchanged that do not contain the sentences', () => {
  expect(dimmed('Refunds are due.', ['They are paid.', ''])).toEqual(['Refunds are due.'])
})

test('dim text is not bold', () => {
  const lines = dimSentences(renderText('It is **bold** text.', 30), ['It is **bold** text.'])
  expect(lines[0]!.flatMap(({ tones }) => tones)).not.toContain('strong')
})
