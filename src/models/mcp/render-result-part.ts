import type { CallToolResult } from '@modelcontextprotocol/client'

type ResultPart = CallToolResult['content'][number]

/** A part of a tool result, as text for a model. */
interface RenderedPart {
  readonly text: string
  /** False for a note that replaces a part that is not text. */
  readonly isText: boolean
}

/** Maximum length of a title, type or description in a part. */
const labelChars = 400
const uriChars = 2_048

/**
 * Converts a part of a tool result to text. Text is unchanged. An embedded text resource is preceded by its URI. Any
 * other part is replaced with a note.
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
  const about = description ? `: ${oneLine(description, labelChars)}` : ''
  return `[link ${oneLine(title || name, labelChars)} ${oneLine(uri, uriChars)}]${about}`
}

function note(text: string): RenderedPart {
  return { text, isText: false }
}

/** Returns a text as one line of at most `charsMax` characters. */
function oneLine(text: string, charsMax: number): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, charsMax)
}
