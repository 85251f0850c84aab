import type { Sink } from './output.ts'

/** Symbols of the command line and their ASCII replacements of the same width. */
const asciiOfSymbol: Readonly<Record<string, string>> = {
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
    write: text => stream.write(toAscii(text)),
  }
}

/** Returns a terminal whose text is written in ASCII; all else is that of the stream. */
export function asciiTerminal(stream: NodeJS.WriteStream): NodeJS.WriteStream {
  const write = (text: string, ...rest: [BufferEncoding?, (() => void)?]) =>
    stream.write(toAscii(text), ...rest)
  return new Proxy(stream, {
    get(target, name) {
      if (name === 'write') return write
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

function toAscii(text: string): string {
  return text.replace(beyondAscii, sign => asciiOfSymbol[sign] ?? (braille.test(sign) ? '*' : '?'))
}
