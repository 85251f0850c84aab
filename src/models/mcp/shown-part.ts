import type { CallToolResult } from '@modelcontextprotocol/client'

type ResultPart = CallToolResult['content'][number]

/** Part of a result, as text for a model. */
interface ShownPart {
  readonly text: string
  /** True for text of the result, false for a note that replaces another part. */
  readonly isText: boolean
}

/** Maximum length of a title, type or description in a part. */
const labelChars = 400
const uriChars = 2_048

/**
 * Returns a text unchanged, an embedded text with its URI, a link as its title and URI, and a note for any
 * other part.
 */
export function shownPart(part: ResultPart): ShownPart {
  if (part.type === 'text') return { text: part.text, isText: true }
  if (part.type === 'resource') return embedded(part.resource)
  if (part.type === 'resource_link') return noteText(linkText(part))
  return noteText(`[${part.type} left out]`)
}

function embedded(resource: Extract<ResultPart, { type: 'resource' }>['resource']): ShownPart {
  const { mimeType } = resource
  const uri = short(resource.uri, uriChars)
  if ('text' in resource) return { text: `[resource ${uri}]\n${resource.text}`, isText: true }
  return noteText(`[resource ${uri} left out${mimeType ? `: ${short(mimeType, labelChars)}` : ''}]`)
}

function linkText({ uri, name, title, description }: Extract<ResultPart, { type: 'resource_link' }>): string {
  const about = description ? `: ${short(description, labelChars)}` : ''
  return `[link ${short(title || name, labelChars)} ${short(uri, uriChars)}]${about}`
}

function noteText(text: string): ShownPart {
  return { text, isText: false }
}

/** Returns text as one line, truncated to a length. */
function short(text: string, charsMax: number): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, charsMax)
}
