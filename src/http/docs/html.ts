/** HTML source that must not be escaped again. */
export class Html {
  constructor(readonly text: string) {}
}

type HtmlPart = Html | string | number | undefined | readonly Html[]

/** Template tag that escapes all values except `Html`. */
export function html(strings: TemplateStringsArray, ...parts: HtmlPart[]): Html {
  return new Html(strings.reduce((text, piece, at) => text + toHtmlText(parts[at - 1]) + piece))
}

function toHtmlText(part: HtmlPart): string {
  if (part === undefined) return ''
  if (part instanceof Html) return part.text
  if (typeof part === 'object') return part.map(each => each.text).join('')
  return String(part).replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
}

/** Returns a text as HTML, with the parts in backticks as `<code>`. */
export function proseHtml(text: string): Html {
  const parts = text.split('`')
  return html`${parts.map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))}`
}

/** Returns a path, name or error code as HTML, with line breaks allowed only after `/`, `.` and `_`. */
export function breakableHtml(text: string): Html {
  const parts = text.split(/(?<=[/._])(?=.)/)
  return html`${parts.map((part, at) => (at === 0 ? html`${part}` : html`<wbr>${part}`))}`
}
