/** HTML that needs no escaping. */
export class Html {
  constructor(readonly text: string) {}
}

type HtmlPart = Html | string | number | undefined | readonly Html[]

/** Template tag that escapes its values, except `Html` values. */
export function html(strings: TemplateStringsArray, ...parts: HtmlPart[]): Html {
  return new Html(strings.reduce((text, piece, at) => text + toHtmlText(parts[at - 1]) + piece))
}

function toHtmlText(part: HtmlPart): string {
  if (part === undefined) return ''
  if (part instanceof Html) return part.text
  if (typeof part === 'object') return part.map(each => each.text).join('')
  return String(part).replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
}

/** Returns text with each part between backticks as `<code>`. */
export function proseHtml(text: string): Html {
  const parts = text.split('`')
  return html`${parts.map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))}`
}

/** Returns a path, name or code that may wrap only after its separators. */
export function breakableHtml(text: string): Html {
  const parts = text.split(/(?<=[/._])(?=.)/)
  return html`${parts.map((part, at) => (at === 0 ? html`${part}` : html`<wbr>${part}`))}`
}
