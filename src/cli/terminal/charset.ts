import type { Sink } from './output.ts'

/** Symbols of the command line and their ASCII replacements of the same width. */
const signs: Readonly<Record<string, string>> = {
  '✓': '+',
  '✗': 'x',
  '…': '.',
  '–': '-',
  '—': '-',
  '·': '-',
  '›': '>',
  '→': '>',
  '█': '#',
  '░': '.',
  '▌': '|',
  '▮': '#',
  '▯': '.',
  '“': '"',
  '”': '"',
  '’': "'",
  '╭': '+',
  '╮': '+',
  '╰': '+',
  '╯': '+',
  '│': '|',
  '─': '-',
  '•': '*',
  '⚙': '#',
  '☑': 'x',
  '☐': '.',
}

const beyondAscii = /[^\x00-\x7f]/gu
const braille = /[\u2800-\u28ff]/u

/**
 * Returns a sink for an ASCII terminal. Known symbols are replaced; other characters become question marks.
 */
export function asciiSink(stream: Sink): Sink {
  return {
    isTTY: stream.isTTY,
    get columns() {
      return stream.columns
    },
    write: text => stream.write(inAscii(text)),
  }
}

function inAscii(text: string): string {
  return text.replace(beyondAscii, sign => signs[sign] ?? (braille.test(sign) ? '*' : '?'))
}
