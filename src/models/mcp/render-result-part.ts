import type { CallToolResult } from '@modelcontextprotocol/client'

type ResultPart = CallToolResult['content'][number]

/** A part of a tool result, rendered as text for a model. */
interface RenderedPart {
  readonly text: string
  /** False for a note that replaces a part without text. */
  readonly isText: boolean
}

/** Maximum length of a title, type or description in a part. */
const labelChars = 400
const uriChars = 2_048

/**
 * Converts a part of a tool result to text. Returns text unchanged, an embedded text resource with its URI, and a note
 * for any other part.
 */
export function renderResultPart(part: ResultPart): RenderedPart {
  if (part.type === 'text') return { text: part.text, isText: true }
  if (part.type === 'resource') return renderResource(part.resource)
  if (part.type === 'resource_link') return note(linkText(part))
  return note(`[${part.type} left out]`)
}

function renderResource(resource: Extract<ResultPart, { type: 'resource' }>['resource']): RenderedPart {
  const { mimeType } = resource
  const uri = oneLine(resource.uri, uriChars)
  if ('text' in resource) return { text: `[resource ${uri}]\n${resource.text}`, isText: true }
  return note(`[resource ${uri} left out${mimeType ? `: ${oneLine(mimeType, labelChars)}` : ''}]`)
}

function linkText({ uri, name, title, description }: Extract<ResultPart, { type: 'resource_link' }>): string {
  const descriptionSuffix = description ? `: ${oneLine(description, labelChars)}` : ''
  return `[link ${oneLine(title || name, labelChars)} ${oneLine(uri, uriChars)}]${descriptionSuffix}`
}

function note(text: string): RenderedPart {
  return { text, isText: false }
}

/** Returns a text as one line of at most `charsMax` characters. */
function oneLine(text: string, charsMax: number): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, charsMax)
}
