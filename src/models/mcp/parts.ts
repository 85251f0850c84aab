import type { CallToolResult } from '@modelcontextprotocol/client'

type Part = CallToolResult['content'][number]

/** A part of a result as a model is given it. */
interface ShownPart {
  readonly text: string
  /** It is text of the result itself, and not a note about something else. */
  readonly isText: boolean
}

/** Of a title, a type or a description that a server sends with a part. */
const labelChars = 400
const uriChars = 2_048

/** Text as it is, the text of an embedded resource below its URI, a link as title and URI; of anything else its kind. */
export function shownPart(part: Part): ShownPart {
  if (part.type === 'text') return { text: part.text, isText: true }
  if (part.type === 'resource') return embedded(part.resource)
  if (part.type === 'resource_link') return note(linkText(part))
  return note(`[${part.type} left out]`)
}

function embedded(resource: Extract<Part, { type: 'resource' }>['resource']): ShownPart {
  const { mimeType } = resource
  const uri = short(resource.uri, uriChars)
  if ('text' in resource) return { text: `[resource ${uri}]\n${resource.text}`, isText: true }
  return note(`[resource ${uri} left out${mimeType ? `: ${short(mimeType, labelChars)}` : ''}]`)
}

function linkText({ uri, name, title, description }: Extract<Part, { type: 'resource_link' }>): string {
  const about = description ? `: ${short(description, labelChars)}` : ''
  return `[link ${short(title || name, labelChars)} ${short(uri, uriChars)}]${about}`
}

function note(text: string): ShownPart {
  return { text, isText: false }
}

/** One line of a length. */
function short(text: string, charsMax: number): string {
  return text.replace(/\s+/g, ' ').trim().slice(0, charsMax)
}
