import { Chalk } from 'chalk'
import type { Line, Tone } from './spans.ts'

/** Converts a line to a string with the escape sequences of its styles. */
export type Paint = (line: Line) => string

const chalk = new Chalk({ level: 1 })

const styles: Readonly<Record<Tone, (text: string) => string>> = {
  dim: chalk.dim,
  strong: chalk.bold,
  em: chalk.italic,
  struck: chalk.strikethrough,
  code: chalk.cyan,
  link: chalk.underline,
  heading: chalk.bold,
  cite: chalk.cyan,
  good: chalk.green,
  bad: chalk.red,
  warning: chalk.yellow,
  accent: chalk.magenta,
  keyword: chalk.magenta,
  string: chalk.green,
  number: chalk.yellow,
  name: chalk.blue,
  inverse: chalk.inverse,
}

const plainPaint: Paint = line => line.map(({ text }) => text).join('')

const colorPaint: Paint = line =>
  line.map(({ text, tones }) => tones.reduce((painted, tone) => styles[tone](painted), text)).join('')

/** @param hasColors  false to omit all styles, as `NO_COLOR` requires */
export function paintFor(hasColors: boolean): Paint {
  return hasColors ? colorPaint : plainPaint
}
