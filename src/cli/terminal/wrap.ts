import { displayWidth } from './terminal-text.ts'

/** Minimum width for the words of a continuation line, in cells. */
const textWidthMin = 20
/** Indentation to use if the requested one leaves less than {@link textWidthMin}. */
const indentFallback = 4

/**
 * Wraps a line between words. A word that is wider than a line is not broken, so that IDs, paths and addresses can be
 * copied. Styles have no width.
 *
 * @param continuationIndent  indentation of continuation lines
 */
export function wrapLine(line: string, width: number, continuationIndent: number): string[] {
  if (displayWidth(line) <= width) return [line]
  const isTooNarrow = width - continuationIndent < textWidthMin
  const indent = isTooNarrow ? Math.min(continuationIndent, indentFallback) : continuationIndent
  const lines: string[] = []
  let current = ''
  for (const [word] of line.matchAll(/\s*\S+/g)) {
    if (current === '' || displayWidth(current + word) <= width) {
      current += word
      continue
    }
    lines.push(current)
    const trimmedWord = word.trimStart()
    current = ' '.repeat(Math.max(0, Math.min(indent, width - displayWidth(trimmedWord)))) + trimmedWord
  }
  return [...lines, current]
}

/** Words of a shell command with the spaces before them. Quoted text is part of its word. */
const commandWords = /\s*(?:[^\s"']|"[^"]*"|'[^']*'|["'])+/g

/**
 * Wraps a shell command between words. All lines except the last end with `\`, so that a shell reads one
 * command. A word that is wider than a line is not broken.
 */
export function wrapCommandLine(line: string, width: number): string[] {
  if (displayWidth(line) <= width) return [line]
  const [indent] = /^ */.exec(line)!
  const words = line.match(commandWords) ?? []
  const lines: string[] = []
  let current = ''
  for (const [index, word] of words.entries()) {
    const widthMax = index === words.length - 1 ? width : width - continuationMark.length
    if (current === '' || displayWidth(current + word) <= widthMax) current += word
    else {
      lines.push(current + continuationMark)
      current = `${indent}  ${word.trimStart()}`
    }
  }
  return [...lines, current]
}

const continuationMark = ' \\'

/** Lines that start with a command or a flag. They are not wrapped, so that they can be copied. */
const commandLine = /^\s*(?:wb|npx workbase|node \S+|--\S+|kill) /

/** A command and its description, with at least two spaces between them. */
const describedCommand = /^( *)(\S.*?) {2,}(\S.*)$/
/** The label of a line, with the spaces around it: `    may not  `. */
const lineLabel = /^ *\S+(?: \S+)? {2,}(?=\S)/
const labelWidthMax = 16

/**
 * Wraps a message to the width of a terminal, with indented continuation lines. If a command and its description do not
 * fit on one line, the description is moved to the next line.
 */
export function wrapWords(text: string, width: number): string {
  return text
    .split('\n')
    .flatMap(line =>
      commandLine.test(line) ? wrapDescribedCommand(line, width) : wrapLine(line, width, textIndent(line)),
    )
    .join('\n')
}

function wrapDescribedCommand(line: string, width: number): string[] {
  const [, indent, command, description] = describedCommand.exec(line) ?? []
  if (description === undefined || displayWidth(line) <= width) return [line]
  const descriptionIndent = `${indent}    `
  return [
    `${indent}${command}`,
    ...wrapLine(`${descriptionIndent}${description}`, width, descriptionIndent.length),
  ]
}

/** Returns the indentation of continuation lines: the width of the label, or else two more than that of the line. */
function textIndent(line: string): number {
  const labelWidth = displayWidth(lineLabel.exec(line)?.[0] ?? '')
  return labelWidth > 0 && labelWidth <= labelWidthMax ? labelWidth : /^ */.exec(line)![0].length + 2
}
