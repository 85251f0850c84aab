import { displayWidth } from './terminal-text.ts'

/** Minimum width that an indentation leaves for words, in cells. */
const textWidthMin = 20
/** Indentation if the requested one leaves too little space. */
const indentFallback = 4

/**
 * Wraps a line between words. Words wider than a line stay whole, because IDs, paths and addresses are
 * copied. Styles do not count.
 *
 * @param hang  indentation of continuation lines
 */
export function wrapLine(line: string, width: number, hang: number): string[] {
  if (displayWidth(line) <= width) return [line]
  const indent = width - hang < textWidthMin ? Math.min(hang, indentFallback) : hang
  const lines: string[] = []
  let open = ''
  for (const [word] of line.matchAll(/\s*\S+/g)) {
    if (open === '' || displayWidth(open + word) <= width) {
      open += word
      continue
    }
    lines.push(open)
    const bare = word.trimStart()
    open = ' '.repeat(Math.max(0, Math.min(indent, width - displayWidth(bare)))) + bare
  }
  return [...lines, open]
}

/** Words of a shell command with their leading spaces. A quoted text is part of a word. */
const commandWords = /\s*(?:[^\s"']|"[^"]*"|'[^']*'|["'])+/g

/**
 * Wraps a shell command between words. Each line but the last ends with `\`, so a shell reads one command. Words that are
 * wider than a line are not broken.
 */
export function wrapCommandLine(line: string, width: number): string[] {
  if (displayWidth(line) <= width) return [line]
  const [indent] = /^ */.exec(line)!
  const words = line.match(commandWords) ?? []
  const lines: string[] = []
  let open = ''
  for (const [at, word] of words.entries()) {
    const room = at === words.length - 1 ? width : width - continuationMark.length
    if (open === '' || displayWidth(open + word) <= room) open += word
    else {
      lines.push(open + continuationMark)
      open = `${indent}  ${word.trimStart()}`
    }
  }
  return [...lines, open]
}

const continuationMark = ' \\'

/** Lines with commands, which are not wrapped so that they can be copied. */
const commandLine = /^\s*(?:wb|npx workbase|node \S+|--\S+|kill) /

/** Wraps a message to the width of a terminal, with indented continuation lines. */
export function wrapWords(text: string, width: number): string {
  return text
    .split('\n')
    .flatMap(line =>
      commandLine.test(line) ? [line] : wrapLine(line, width, /^ */.exec(line)![0].length + 2),
    )
    .join('\n')
}
