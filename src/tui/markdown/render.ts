import { Lexer, type Token, type Tokens } from 'marked'
import { displayWidth, plain } from '../../cli/terminal/terminal-text.ts'
import { type Line, type StyledSpan, span, type Tone, wrap, wrapExact } from '../parts/spans.ts'
import { type Block, blocksOf, isTooDeep } from './blocks.ts'
import { tableLines } from './table.ts'

/** Highlights lines of code; returns undefined for an unknown language. */
export type Highlight = (lines: readonly string[], language: string) => Line[] | undefined

const codeIndent: Line = [span('  ')]
const bullets = ['•', '–']
const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  '#39': "'",
  nbsp: ' ',
}

/** Renders a complete text as lines that fit a width. */
export function renderText(text: string, width: number, highlight?: Highlight): Line[] {
  return blocksOf(text).flatMap(block => [
    ...(block.gap ? [[]] : []),
    ...renderBlock(block, width, highlight),
  ])
}

/** Returns the text of a Markdown sentence, as it is shown on one line. */
export function plainMarkdown(sentence: string): string {
  return renderText(sentence, Number.POSITIVE_INFINITY)
    .flat()
    .map(({ text }) => text)
    .join('')
}

/** Renders a block as lines that fit a width, without the empty line before it. */
export function renderBlock(block: Block, width: number, highlight?: Highlight): Line[] {
  if (block.kind === 'code') return codeLines(block.lines, block.language, width, highlight)
  if (isTooDeep(block.source)) return wrap([span(block.source.trimEnd())], width)
  return new Renderer(width, highlight).blocks(new Lexer().lex(block.source))
}

function codeLines(
  lines: readonly string[],
  language: string,
  width: number,
  highlight: Highlight | undefined,
): Line[] {
  const untabbed = lines.map(line => line.replaceAll('\t', '  '))
  const highlighted = highlight?.(untabbed, language) ?? untabbed.map(line => [span(line, 'code')])
  return highlighted.flatMap(line => wrapExact(line, width, codeIndent))
}

class Renderer {
  constructor(
    private readonly width: number,
    private readonly highlight: Highlight | undefined,
    private readonly depth = 0,
  ) {}

  /** Renders blocks with the empty lines between them. */
  blocks(tokens: readonly Token[]): Line[] {
    const lines: Line[] = []
    let needsGap = false
    for (const token of tokens) {
      if (token.type === 'space') needsGap = true
      else {
        const rendered = this.block(token)
        if (rendered.length > 0 && lines.length > 0 && needsGap) lines.push([])
        if (rendered.length > 0) needsGap = /\n\s*\n$/.test(token.raw)
        lines.push(...rendered)
      }
    }
    return lines
  }

  private block(token: Token): Line[] {
    switch (token.type) {
      case 'heading':
        return wrap(renderInline((token as Tokens.Heading).tokens, ['heading']), this.width)
      case 'paragraph':
        return wrap(renderInline((token as Tokens.Paragraph).tokens), this.width)
      case 'text':
        return wrap(renderInline((token as Tokens.Text).tokens ?? [token]), this.width)
      case 'code': {
        const { text, lang = '' } = token as Tokens.Code
        return codeLines(text.split('\n'), lang, this.width, this.highlight)
      }
      case 'list':
        return this.list(token as Tokens.List)
      case 'blockquote':
        return this.quote(token as Tokens.Blockquote)
      case 'table':
        return this.table(token as Tokens.Table)
      case 'hr':
        return [[span('─'.repeat(Math.min(this.width, 24)), 'dim')]]
      case 'def':
        return []
      default:
        return wrap([span(decodeEntities(token.raw.trimEnd()))], this.width)
    }
  }

  private list({ items, ordered, start }: Tokens.List): Line[] {
    return items.flatMap((item, index) => {
      const mark = ordered ? `${Number(start || 1) + index}.` : bullets[Math.min(this.depth, 1)]!
      const markWithCheckbox = item.task ? `${mark} ${item.checked ? '☑' : '☐'}` : mark
      const indent = ' '.repeat(displayWidth(markWithCheckbox) + 1)
      const inner = new Renderer(Math.max(1, this.width - indent.length), this.highlight, this.depth + 1)
      const lines = inner.blocks(item.tokens.filter(({ type }) => type !== 'checkbox'))
      const [first = [], ...rest] = lines
      const gap = index > 0 && /\n\s*\n$/.test(items[index - 1]!.raw) ? [[]] : []
      const firstLine: Line[] = [[span(`${markWithCheckbox} `, 'dim'), ...first]]
      return [
        ...gap,
        ...firstLine,
        ...rest.map((line): Line => (line.length === 0 ? [] : [span(indent), ...line])),
      ]
    })
  }

  private quote({ tokens }: Tokens.Blockquote): Line[] {
    const inner = new Renderer(Math.max(1, this.width - 2), this.highlight, this.depth)
    return inner.blocks(tokens).map(line => [span('│ ', 'dim'), ...line])
  }

  private table({ header, rows, align }: Tokens.Table): Line[] {
    const head = header.map(({ tokens }) => renderInline(tokens, ['strong']))
    const body = rows.map(row => row.map(({ tokens }) => renderInline(tokens)))
    return tableLines({ head, body, alignments: align }, this.width)
  }
}

/** Renders inline Markdown. */
function renderInline(tokens: readonly Token[], tones: readonly Tone[] = []): StyledSpan[] {
  return tokens.flatMap(token => renderInlineToken(token, tones))
}

function renderInlineToken(token: Token, tones: readonly Tone[]): StyledSpan[] {
  switch (token.type) {
    case 'strong':
      return renderInline((token as Tokens.Strong).tokens, [...tones, 'strong'])
    case 'em':
      return renderInline((token as Tokens.Em).tokens, [...tones, 'em'])
    case 'del':
      return renderInline((token as Tokens.Del).tokens, [...tones, 'struck'])
    case 'codespan':
      return [{ text: plain((token as Tokens.Codespan).text), tones: [...tones, 'code'] }]
    case 'br':
      return [span('\n')]
    case 'link':
      return renderLink(token as Tokens.Link, tones)
    case 'image': {
      const { text, href } = token as Tokens.Image
      return [
        { text: plain(text) || 'image', tones },
        { text: ` (${plain(href)})`, tones: [...tones, 'dim'] },
      ]
    }
    case 'escape':
      return [{ text: (token as Tokens.Escape).text, tones }]
    case 'text': {
      const { tokens: inner, text } = token as Tokens.Text
      return inner ? renderInline(inner, tones) : highlightCitations(text, tones)
    }
    default:
      return [{ text: token.raw, tones }]
  }
}

/** Returns the text of a link, and its address if it differs. */
function renderLink({ href, tokens, text }: Tokens.Link, tones: readonly Tone[]): StyledSpan[] {
  const label = renderInline(tokens, [...tones, 'link'])
  const address = href.replace(/^mailto:/, '')
  return text === href || text === address
    ? label
    : [...label, { text: ` (${plain(href)})`, tones: [...tones, 'dim'] }]
}

/** Highlights citations such as `[1]`. A newline in the source is a space. */
function highlightCitations(text: string, tones: readonly Tone[]): StyledSpan[] {
  const parts = decodeEntities(text.replaceAll('\n', ' ')).split(/((?:\[\d{1,3}\])+)/)
  return parts
    .map((part, index): StyledSpan => ({ text: part, tones: index % 2 === 1 ? [...tones, 'cite'] : tones }))
    .filter(({ text }) => text !== '')
}

/** Decodes entities, and removes control characters that they may contain. */
function decodeEntities(text: string): string {
  const decoded = text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (_, name: string) => entities[name]!)
  return plain(decoded)
}
