import { SaxesParser } from 'saxes'
import { unreadable } from './file-text.ts'

/** An element of an XML document. Its name is without the prefix, and the names of attributes are with it. */
export interface XmlElement {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  readonly children: readonly (XmlElement | string)[]
}

/** Maximum depth of elements, so that functions can visit them recursively. */
const depthMax = 500

/**
 * Parses XML. Entities that a document declares are not expanded.
 *
 * @throws extraction_failed  the XML is damaged or nested too deeply
 */
export function parseXml(xml: string): XmlElement {
  type Draft = { name: string; attributes: Record<string, string>; children: (XmlElement | string)[] }
  const root: Draft = { name: '', attributes: {}, children: [] }
  const open = [root]
  const parser = new SaxesParser()
  parser.on('error', error => {
    throw error
  })
  parser.on('opentag', ({ name, attributes }) => {
    if (open.length > depthMax) throw new Error('nested too deeply')
    const element: Draft = {
      name: withoutPrefix(name),
      attributes,
      children: [],
    }
    open.at(-1)!.children.push(element)
    open.push(element)
  })
  parser.on('closetag', () => void open.pop())
  const addText = (text: string) => void open.at(-1)!.children.push(text)
  parser.on('text', addText)
  parser.on('cdata', addText)
  try {
    parser.write(xml.replace(/^\uFEFF/, '')).close()
  } catch (cause) {
    throw unreadable('contains damaged XML', undefined, cause)
  }
  return root
}

function withoutPrefix(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}

/** Returns all elements with one of the names below an element, in order. Does not look into elements that match. */
export function* elementsOf(element: XmlElement, ...names: readonly string[]): Generator<XmlElement> {
  for (const child of element.children) {
    if (typeof child === 'string') continue
    if (names.includes(child.name)) yield child
    else yield* elementsOf(child, ...names)
  }
}

/** Returns the text of an element and its descendants. */
export function textOf(element: XmlElement | undefined): string {
  return element
    ? element.children.map(child => (typeof child === 'string' ? child : textOf(child))).join('')
    : ''
}

/** Returns the first element with the name below an element. */
export function firstElement(element: XmlElement | undefined, name: string): XmlElement | undefined {
  return element && elementsOf(element, name).next().value
}
