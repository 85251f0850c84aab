/** HTML source that must not be escaped again. */
export class Html {
  constructor(readonly text: string) {}
}

type HtmlPart = Html | string | number | undefined | readonly Html[]

/** Template tag that escapes all values except `Html`. */
export function html(strings: TemplateStringsArray, ...parts: HtmlPart[]): Html {
  return new Html(strings.reduce((text, piece, index) => text + toHtmlText(parts[index - 1]) + piece))
}

function toHtmlText(part: HtmlPart): string {
  if (part === undefined) return ''
  if (part instanceof Html) return part.text
  if (typeof part === 'object') return part.map(({ text }) => text).join('')
  return String(part).replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
}

/** Converts text to HTML, with the parts in backticks as `<code>`. */
export function proseHtml(text: string): Html {
  const parts = text.split('`')
  return html`${parts.map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))}`
}

/** Converts a path, name or error code to HTML, with line breaks allowed only after `/`, `.` and `_`. */
export function breakableHtml(text: string): Html {
  const parts = text.split(/(?<=[/._])(?=.)/)
  return html`${parts.map((part, index) => (index === 0 ? html`${part}` : html`<wbr>${part}`))}`
}
