import type { Line, Tone } from './spans.ts'

/** A line as it is written to a terminal. */
export type Paint = (line: Line) => string

const codes: Readonly<Record<Tone, readonly [on: number | string, off: number]>> = {
  dim: [2, 22],
  strong: [1, 22],
  em: [3, 23],
  struck: [9, 29],
  code: [36, 39],
  link: [4, 24],
  heading: [1, 22],
  cite: [36, 39],
  good: [32, 39],
  bad: [31, 39],
  accent: [35, 39],
  keyword: [35, 39],
  string: [32, 39],
  number: [33, 39],
  name: [34, 39],
  inverse: [7, 27],
}

const plainPaint: Paint = line => line.map(({ text }) => text).join('')

const colourPaint: Paint = line =>
  line
    .map(({ text, tones }) =>
      tones.reduce((painted, tone) => `\x1b[${codes[tone][0]}m${painted}\x1b[${codes[tone][1]}m`, text),
    )
    .join('')

/** @param colour  true for a terminal that shows colours, to someone who wants them */
export function paintFor(colour: boolean): Paint {
  return colour ? colourPaint : plainPaint
}
