import type { Sink } from './output.ts'

/** Signs of ours, each as one of ASCII, so that what is aligned stays so. */
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

/** A terminal that takes ASCII alone: our signs have others there, and what else there is becomes a question mark. */
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
