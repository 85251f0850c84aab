import { type FileText, tidy, titleOf, unreadable } from './file-text.ts'

interface Notebook {
  readonly cells?: readonly Cell[]
  readonly metadata?: { readonly kernelspec?: { readonly language?: unknown } }
}

interface Cell {
  readonly cell_type?: unknown
  readonly source?: unknown
  readonly outputs?: readonly { readonly text?: unknown; readonly data?: Readonly<Record<string, unknown>> }[]
}

/**
 * Returns the cells of a Jupyter notebook: texts, code, and outputs that are text.
 *
 * @throws extraction_failed  the file is not a notebook
 */
export function readNotebook(json: string): FileText {
  try {
    const { cells = [], metadata } = JSON.parse(json) as Notebook
    const language = typeof metadata?.kernelspec?.language === 'string' ? metadata.kernelspec.language : ''
    const text = tidy(cells.flatMap(cell => blocksOf(cell, language)).join('\n\n'))
    return { text, title: titleOf(/^# (.+)/m.exec(text)?.[1]) }
  } catch (error) {
    throw unreadable('is a damaged notebook', undefined, error)
  }
}

function blocksOf({ cell_type, source, outputs = [] }: Cell, language: string): string[] {
  const text = joined(source)
  if (cell_type !== 'code') return [text]
  const results = outputs.map(({ text: printed, data }) => joined(printed) || joined(data?.['text/plain']))
  return [
    ...(text.trim() === '' ? [] : [fenced(text, language)]),
    ...results.filter(result => result.trim() !== '').map(result => fenced(result.trimEnd(), '')),
  ]
}

/** Returns a text that a notebook can store as a list of lines. */
function joined(text: unknown): string {
  return Array.isArray(text)
    ? text.filter(line => typeof line === 'string').join('')
    : typeof text === 'string'
      ? text
      : ''
}

function fenced(text: string, language: string): string {
  return `\`\`\`${language}\n${text}\n\`\`\``
}
