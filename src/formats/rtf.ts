import { type FileText, tidy, titleOf, unreadable } from './file-text.ts'
import { decoderFor } from './text.ts'

/** Groups whose text is not part of the content. */
const omittedGroups = new Set(
  (
    'fonttbl colortbl stylesheet pict object listtable listoverridetable rsidtbl themedata colorschememapping datastore ' +
    'latentstyles header headerl headerr headerf footer footerl footerr footerf footnote annotation xmlnstbl generator fldinst'
  ).split(' '),
)
/** Texts of control words. */
const symbols: Readonly<Record<string, string>> = {
  par: '\n\n',
  sect: '\n\n',
  page: '\n\n',
  line: '\n',
  row: '\n',
  tab: ' ',
  cell: ' | ',
  nestcell: ' | ',
  nestrow: '\n',
  emdash: '—',
  endash: '–',
  bullet: '•',
  lquote: '‘',
  rquote: '’',
  ldblquote: '“',
  rdblquote: '”',
  emspace: ' ',
  enspace: ' ',
}
const token = /\\([a-z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-f]{2})|\\([^a-z])|([{}])|[\r\n]+|([^\\{}\r\n]+)/gi

interface Group {
  /** Destination of the text of the group. */
  readonly target: 'content' | 'title' | 'nowhere'
  /** Number of characters that follow a Unicode character for programs that cannot show it. */
  readonly fallbackChars: number
}

/** Returns the text of a file in Rich Text Format, without its formatting. @throws extraction_failed  the file is damaged */
export function readRtf(bytes: Uint8Array): FileText {
  const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  const texts = { content: [] as string[], title: [] as string[], nowhere: [] as string[] }
  const stack: Group[] = []
  let group: Group = { target: 'content', fallbackChars: 1 }
  let decoder = new TextDecoder('windows-1252')
  let fallbackLeft = 0
  const add = (text: string) => {
    const skipped = Math.min(fallbackLeft, text.length)
    fallbackLeft -= skipped
    if (group.target !== 'nowhere') texts[group.target].push(text.slice(skipped))
  }
  token.lastIndex = 0
  for (let match = token.exec(source); match; match = token.exec(source)) {
    const [, word, number, hex, symbol, brace, text] = match
    if (brace === '{') stack.push(group)
    else if (brace === '}') {
      group = stack.pop() ?? group
      fallbackLeft = 0
    } else if (text !== undefined) add(text)
    else if (hex !== undefined) add(decoder.decode(hexBytes(source, match.index, token)))
    else if (symbol === '*') group = { ...group, target: 'nowhere' }
    else if (symbol === '~') add(' ')
    else if (symbol !== undefined && '\\{}'.includes(symbol)) add(symbol)
    else if (word === 'u') {
      add(String.fromCharCode(Number(number) & 0xffff))
      fallbackLeft = group.fallbackChars
    } else if (word === 'uc') group = { ...group, fallbackChars: Math.min(10, Math.max(0, Number(number))) }
    else if (word === 'ansicpg') decoder = decoderForCodePage(Number(number))
    else if (word === 'bin') token.lastIndex += Math.max(0, Number(number))
    else if (word === 'info') group = { ...group, target: 'nowhere' }
    else if (word === 'title') group = { ...group, target: 'title' }
    else if (word && omittedGroups.has(word)) group = { ...group, target: 'nowhere' }
    else if (word && symbols[word]) add(symbols[word])
  }
  if (stack.length > 0) throw unreadable('ends too early')
  return { text: tidy(texts.content.join('')), title: titleOf(texts.title.join('')) }
}

/** Returns adjacent characters in hexadecimal, so that characters of several bytes are decoded. Moves the position of the tokens. */
function hexBytes(source: string, start: number, tokens: RegExp): Buffer {
  const run = /(?:\\'[0-9a-f]{2})+/iy
  run.lastIndex = start
  const [digits = ''] = run.exec(source) ?? []
  tokens.lastIndex = start + digits.length
  return Buffer.from(digits.replaceAll("\\'", ''), 'hex')
}

/** Returns a decoder for a code page of Windows. */
function decoderForCodePage(codePage: number): InstanceType<typeof TextDecoder> {
  const names: Readonly<Record<number, string>> = {
    932: 'shift_jis',
    936: 'gbk',
    949: 'euc-kr',
    950: 'big5',
    65001: 'utf-8',
  }
  return decoderFor(names[codePage] ?? `windows-${codePage}`)
}
