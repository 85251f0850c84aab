import domino, { type PageElement } from '@mixmark-io/domino'
import TurndownService from 'turndown'
import type { WbError } from '../contract/errors.ts'
import { type FileText, markdownTable, tidy, titleOf, unreadable } from './file-text.ts'
import { decodeText } from './text.ts'

/** Elements that are not part of the content of a page. */
const omitted =
  'script, style, noscript, template, iframe, object, embed, canvas, svg, nav, dialog, button, select, input, textarea, ' +
  '[hidden], [aria-hidden="true"], [role="navigation"], [role="banner"], [role="contentinfo"], [role="search"]'
/** Elements around the content of a page. Inside of an article, they can be part of it. */
const frame = 'body > header, body > footer, body > aside'
/** Share of the text of a page that its main element must contain to be used alone. */
const mainShare = 0.5

/** Start and end tags of the elements that contain others most often. */
const blockTag =
  /<(\/?)(?:article|blockquote|center|details|div|dl|fieldset|figure|main|menu|ol|section|ul)\b/gi
/** Maximum number of blocks without an end tag. */
const openBlocksMax = 5_000
/** Elements that the parser opens again in each block until they are closed. */
const formattingTag = /<(\/?)(?:a|b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)\b/gi
const openFormattingMax = 5_000
/** Maximum number of elements inside of each other. The conversion takes cubic time. */
const depthMax = 500
/** Length of a tag from which its attributes are counted. */
const longTagChars = 20_000
const attributesMax = 1_000
const whiteSpace = /(?:\s|&nbsp;|&#(?:x?0*(?:a0|20|9|a|d|32|160|10|13));?)+/gi
/** Length from which white space is shortened, because it takes quadratic time to convert. */
const longSpaceChars = 500

/** @throws extraction_failed  the page is nested too deeply */
export function readHtml(bytes: Uint8Array): FileText {
  return convertHtml(decodeText(bytes, declaredEncoding(bytes)))
}

function declaredEncoding(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.subarray(0, 4_096)).toString('latin1')
  return (
    /<meta[^>]{0,200}charset\s*=\s*["']?([\w.:-]{1,40})/i.exec(head)?.[1] ??
    /^<\?xml[^>]{0,200}encoding=["']([\w.:-]{1,40})/i.exec(head)?.[1]
  )
}

/**
 * Converts the content of a page to Markdown. Omits scripts, forms, navigation, and the frame of the page.
 *
 * @throws extraction_failed  the page is nested too deeply
 */
export function convertHtml(html: string): FileText {
  requireFlat(html)
  try {
    const document = domino.createDocument(html.replace(whiteSpace, shortened))
    if (document.body && isDeeperThan(depthMax, document.body)) throw tooDeep()
    for (const element of Array.from(document.querySelectorAll(`${omitted}, ${frame}`))) element.remove()
    const body = document.body
    const title = titleOf(document.title) ?? titleOf(body?.querySelector('h1')?.textContent)
    if (!body) return { text: '', title }
    return { text: tidy(converter.turndown(contentOf(body) as never)), title }
  } catch (error) {
    if (error instanceof RangeError) throw tooDeep(error)
    throw error
  }
}

/**
 * The parser compares each element with those around it, and each attribute with the others, so deep nesting and many attributes
 * would take minutes.
 */
function requireFlat(html: string): void {
  if (hasMoreOpen(html, blockTag, openBlocksMax) || hasMoreOpen(html, formattingTag, openFormattingMax))
    throw tooDeep()
  for (const part of html.split('>')) {
    if (part.length < longTagChars) continue
    const words = part
      .slice(part.indexOf('<') + 1)
      .replace(/"[^"]*"|'[^']*'/g, '')
      .split(/[\s/]+/)
    if (words.length > attributesMax) throw unreadable('contains an element with too many attributes')
  }
}

/** Returns true if more elements than `max` are open at the same place. */
function hasMoreOpen(html: string, tag: RegExp, max: number): boolean {
  let open = 0
  for (const [, slash] of html.matchAll(tag)) {
    open = Math.max(0, open + (slash === '/' ? -1 : 1))
    if (open > max) return true
  }
  return false
}

function isDeeperThan(max: number, root: PageElement): boolean {
  let element = root
  let depth = 0
  for (;;) {
    if (element.firstElementChild) {
      element = element.firstElementChild
      if (++depth > max) return true
      continue
    }
    while (depth > 0 && !element.nextElementSibling) {
      element = element.parentElement!
      depth--
    }
    if (depth === 0) return false
    element = element.nextElementSibling!
  }
}

function shortened(space: string): string {
  if (space.length < longSpaceChars) return space
  return space.includes('\n') ? '\n\n' : ' '
}

function tooDeep(cause?: unknown): WbError {
  return unreadable('is nested too deeply', undefined, cause)
}

/** Returns the main element of a page if it contains most of its text, otherwise the body. */
function contentOf(body: PageElement): PageElement {
  const candidates = Array.from(body.querySelectorAll('main, [role="main"], article'))
  const length = (element: PageElement) => element.textContent.length
  const main = candidates.find(element => length(element) >= mainShare * length(body))
  return main ?? body
}

/** The text of a link from a heading to itself. */
const linkToItself = /^\s*[¶#§🔗]\s*$/u

const converter = new TurndownService({ headingStyle: 'atx', codeBlockStyle: 'fenced', emDelimiter: '*' })
  .addRule('item', { filter: 'li', replacement: (content, node) => itemOf(elementOf(node), content) })
  // Inline pictures would be kilobytes of base64. Their description remains.
  .addRule('picture', {
    filter: 'img',
    replacement: (_, node) => titleOf(elementOf(node).getAttribute('alt')) ?? '',
  })
  .addRule('link', {
    filter: 'a',
    replacement: (content, node) => {
      if (linkToItself.test(content)) return ''
      const href = elementOf(node).getAttribute('href') ?? ''
      return /^(https?:|mailto:)/i.test(href) && content.trim() !== ''
        ? `[${content.trim()}](${href})`
        : content
    },
  })
  .addRule('table', { filter: 'table', replacement: (content, node) => tableOf(elementOf(node)) ?? content })
  .addRule('strikethrough', { filter: ['del', 's'], replacement: content => `~~${content}~~` })

/** Returns the element that the converter passes to a rule, which it declares with the types of browsers. */
function elementOf(node: unknown): PageElement {
  return node as PageElement
}

// Escapes such as `snake\\_case` would split words for searches.
converter.escape = text => text

function itemOf(item: PageElement, content: string): string {
  const list = item.parentElement
  const at = Array.prototype.indexOf.call(list?.children ?? [], item)
  const marker = list?.nodeName === 'OL' ? `${Number(list.getAttribute('start') ?? 1) + at}. ` : '- '
  return `${marker}${content.trim().replace(/\n/g, `\n${' '.repeat(marker.length)}`)}\n`
}

/** Returns a table in Markdown; undefined for a table that contains other tables, which is only a layout. */
function tableOf(table: PageElement): string | undefined {
  if (table.querySelector('table')) return undefined
  const rows = Array.from(table.querySelectorAll('tr'), row =>
    Array.from(row.querySelectorAll('th, td'), cell => cell.textContent),
  )
  const caption = titleOf(table.querySelector('caption')?.textContent)
  return `\n\n${caption ? `${caption}\n\n` : ''}${markdownTable(rows)}\n\n`
}
