/** The meaning of a key, independent of the sequence that a terminal sends for it. */
export type Key =
  | { readonly type: 'typed'; readonly text: string }
  | { readonly type: 'pasted'; readonly text: string }
  | { readonly type: 'number'; readonly number: number }
  | { readonly type: PlainKey }

type PlainKey =
  | 'enter'
  | 'newline'
  | 'tab'
  | 'backTab'
  | 'escape'
  | 'cancel'
  | 'endOfInput'
  | 'search'
  | 'redraw'
  | 'up'
  | 'down'
  | 'left'
  | 'right'
  | 'wordLeft'
  | 'wordRight'
  | 'home'
  | 'end'
  | 'pageUp'
  | 'pageDown'
  | 'backspace'
  | 'delete'
  | 'deleteWord'
  | 'deleteWordAfter'
  | 'deleteToStart'
  | 'deleteToEnd'
  | 'yank'

/** State of decoding: the input that is not a complete key yet. */
export interface Decoder {
  readonly pending: string
  /** Text of a paste in progress. */
  readonly paste: string | undefined
}

export const emptyDecoder: Decoder = { pending: '', paste: undefined }

/** Sequences that turn bracketed paste on and off. */
export const bracketedPaste = { on: '\x1b[?2004h', off: '\x1b[?2004l' }

const pasteStart = '\x1b[200~'
const pasteEnd = '\x1b[201~'
/** Maximum length of a paste. If a paste is longer, the rest is read as typed keys. */
const PASTE_CHARS_MAX = 4_000_000

const keyOfControlCharacter: Readonly<Record<string, PlainKey>> = {
  '\r': 'enter',
  '\n': 'newline',
  '\t': 'tab',
  '\x01': 'home',
  '\x02': 'left',
  '\x03': 'cancel',
  '\x04': 'endOfInput',
  '\x05': 'end',
  '\x06': 'right',
  '\x08': 'backspace',
  '\x0b': 'deleteToEnd',
  '\x0c': 'redraw',
  '\x0e': 'down',
  '\x10': 'up',
  '\x12': 'search',
  '\x15': 'deleteToStart',
  '\x17': 'deleteWord',
  '\x19': 'yank',
  '\x7f': 'backspace',
}

/** Keys by the characters after `ESC`. @see https://invisible-island.net/xterm/ctlseqs/ctlseqs.html */
const keyOfEscapeSequence: Readonly<Record<string, PlainKey>> = {
  '[A': 'up',
  '[B': 'down',
  '[C': 'right',
  '[D': 'left',
  '[H': 'home',
  '[F': 'end',
  '[Z': 'backTab',
  OA: 'up',
  OB: 'down',
  OC: 'right',
  OD: 'left',
  OH: 'home',
  OF: 'end',
  OM: 'enter',
  '[1~': 'home',
  '[7~': 'home',
  '[4~': 'end',
  '[8~': 'end',
  '[3~': 'delete',
  '[5~': 'pageUp',
  '[6~': 'pageDown',
  '[1;5C': 'wordRight',
  '[1;5D': 'wordLeft',
  '[1;3C': 'wordRight',
  '[1;3D': 'wordLeft',
  '[3;5~': 'deleteWordAfter',
  '[3;3~': 'deleteWordAfter',
  '[13;2u': 'newline',
  '[13;5u': 'newline',
  '[27;2;13~': 'newline',
  '[27;5;13~': 'newline',
  '\r': 'newline',
  '\n': 'newline',
  '\x7f': 'deleteWord',
  '\x08': 'deleteWord',
  b: 'wordLeft',
  f: 'wordRight',
  d: 'deleteWordAfter',
}

const sequence = /^\x1b(?:\x1b?\[[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]|\x1b?O[\x40-\x7e]|[^\x1b[O])/u
const unfinishedSequence = /^\x1b(?:\x1b?\[[\x30-\x3f]*[\x20-\x2f]*|\x1b?O?)?$/

/** Splits terminal input into keys. Returns a decoder with the input that is not a complete key yet, and the keys. */
export function decode({ pending, paste }: Decoder, chunk: string): [Decoder, Key[]] {
  const keys: Key[] = []
  let rest = pending + chunk
  let pasted = paste
  while (rest !== '') {
    if (pasted !== undefined) {
      const end = rest.indexOf(pasteEnd)
      if (end < 0 && pasted.length + rest.length < PASTE_CHARS_MAX) {
        // The end sequence may arrive in two pieces.
        const keptLength = Math.min(rest.length, pasteEnd.length - 1)
        return [{ pending: rest.slice(-keptLength), paste: pasted + rest.slice(0, -keptLength) }, keys]
      }
      keys.push({ type: 'pasted', text: pasted + (end < 0 ? rest : rest.slice(0, end)) })
      rest = end < 0 ? '' : rest.slice(end + pasteEnd.length)
      pasted = undefined
    } else if (rest.startsWith(pasteStart)) {
      pasted = ''
      rest = rest.slice(pasteStart.length)
    } else if (unfinishedSequence.test(rest)) break
    else {
      const length = nextLength(rest)
      const key = keyOf(rest.slice(0, length))
      if (key) keys.push(key)
      rest = rest.slice(length)
    }
  }
  return [{ pending: rest, paste: pasted }, keys]
}

/** Ends an incomplete key sequence: one or more `ESC` become the Escape key, and other input is discarded. */
export function flush({ pending, paste }: Decoder): [Decoder, Key[]] {
  if (paste !== undefined || pending === '') return [{ pending, paste }, []]
  return [emptyDecoder, /^\x1b+$/.test(pending) ? [{ type: 'escape' }] : []]
}

function nextLength(text: string): number {
  if (text.startsWith('\x1b')) return sequence.exec(text)?.[0].length ?? 1
  return /^[^\x00-\x1f\x7f]+/.exec(text)?.[0].length ?? 1
}

function keyOf(text: string): Key | undefined {
  if (text === '\x1b') return { type: 'escape' }
  if (text.startsWith('\x1b')) {
    const rest = text.slice(1)
    if (/^[1-9]$/.test(rest)) return { type: 'number', number: Number(rest) }
    const type = keyOfEscapeSequence[rest]
    return type && { type }
  }
  const type = keyOfControlCharacter[text]
  if (type) return { type }
  return text >= ' ' ? { type: 'typed', text } : undefined
}
