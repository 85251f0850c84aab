/** HTML that may be written out as it is. */
export class Html {
  constructor(readonly text: string) {}
}

type Part = Html | string | number | undefined | readonly Html[]

/** A template whose values are escaped, unless they are `Html` themselves. */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return new Html(strings.reduce((text, piece, at) => text + written(parts[at - 1]) + piece))
}

function written(part: Part): string {
  if (part === undefined) return ''
  if (part instanceof Html) return part.text
  if (typeof part === 'object') return part.map(each => each.text).join('')
  return String(part).replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
}

/** Text in which `code` between backticks is set as code. */
export function prose(text: string): Html {
  const parts = text.split('`')
  return html`${parts.map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))}`
}

/** A path, name or code that may wrap after its separators, and nowhere else. */
export function breakable(text: string): Html {
  const parts = text.split(/(?<=[/._])(?=.)/)
  return html`${parts.map((part, at) => (at === 0 ? html`${part}` : html`<wbr>${part}`))}`
}
