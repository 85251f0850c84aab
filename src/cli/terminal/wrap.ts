import { displayWidth } from './terminal-text.ts'

/** Cells that a hanging indent leaves to the words at least. */
const roomMin = 20
/** The indent where the one that was asked for leaves less. */
const shallow = 4

/**
 * A line broken between words, so that no terminal breaks it inside one. A word that is wider than a line stays whole,
 * as it is an id, a path or an address that somebody will copy. Styles take no cells.
 *
 * @param hang  blanks before every line but the first
 */
export function wrapLine(line: string, width: number, hang: number): string[] {
  if (displayWidth(line) <= width) return [line]
  const indent = width - hang < roomMin ? Math.min(hang, shallow) : hang
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

/** Words of a shell command, each with the spaces before it. A quoted text is part of a word. */
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
    const room = at === words.length - 1 ? width : width - continued.length
    if (open === '' || displayWidth(open + word) <= room) open += word
    else {
      lines.push(open + continued)
      open = `${indent}  ${word.trimStart()}`
    }
  }
  return [...lines, open]
}

const continued = ' \\'

/** Lines to type are left as they are: a terminal that breaks them still copies them whole. */
const toType = /^\s*(?:wb|--\S+|kill) /

/** What is said beside a result, in lines of the terminal; what follows a first line stands a step further in. */
export function wrapWords(text: string, width: number): string {
  return text
    .split('\n')
    .flatMap(line => (toType.test(line) ? [line] : wrapLine(line, width, /^ */.exec(line)![0].length + 2)))
    .join('\n')
}
