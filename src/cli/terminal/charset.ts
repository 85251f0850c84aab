import type { Sink } from './output.ts'

/** ASCII replacements of the symbols that the command line prints. They have the same width. */
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

const nonAscii = /[^\x00-\x7f]/gu
const braille = /[\u2800-\u28ff]/u

/**
 * Returns a sink that writes ASCII to a stream. Known symbols are replaced with similar characters, and other
 * characters with question marks.
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

/** Returns a proxy for a terminal stream. Its `write` writes ASCII, like {@link asciiSink}. */
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
  return text.replace(
    nonAscii,
    character => asciiOfSymbol[character] ?? (braille.test(character) ? '*' : '?'),
  )
}
