import { type Line, type StyledSpan, span, type Tone } from '../parts/spans.ts'
import { common, createLowlight, type Node } from './grammars.js'
import type { Highlight } from './render.ts'

const lowlight = createLowlight()

/** Maximum length of code to highlight. */
const CODE_CHARS_MAX = 20_000

const toneOfClass: Readonly<Record<string, Tone>> = {
  keyword: 'keyword',
  built_in: 'name',
  type: 'name',
  literal: 'number',
  number: 'number',
  string: 'string',
  regexp: 'string',
  subst: 'code',
  symbol: 'number',
  title: 'name',
  name: 'name',
  attr: 'name',
  attribute: 'name',
  property: 'name',
  variable: 'code',
  comment: 'dim',
  quote: 'dim',
  meta: 'dim',
  tag: 'keyword',
  section: 'heading',
  addition: 'good',
  deletion: 'bad',
}

const languageOfAlias: Readonly<Record<string, string>> = {
  sh: 'bash',
  zsh: 'bash',
  console: 'bash',
  js: 'javascript',
  jsx: 'javascript',
  mjs: 'javascript',
  ts: 'typescript',
  tsx: 'typescript',
  py: 'python',
  rb: 'ruby',
  rs: 'rust',
  golang: 'go',
  yml: 'yaml',
  html: 'xml',
  svg: 'xml',
  md: 'markdown',
  'c++': 'cpp',
  'c#': 'csharp',
  cs: 'csharp',
  kt: 'kotlin',
  jsonc: 'json',
  toml: 'ini',
  patch: 'diff',
}

/** Highlights code. Registers a grammar when it is first used. */
export const highlight: Highlight = (lines, languageName) => {
  const lower = languageName.toLowerCase()
  const language = languageOfAlias[lower] ?? lower
  const grammar = Object.hasOwn(common, language) ? common[language] : undefined
  const code = lines.join('\n')
  if (!grammar || code.length > CODE_CHARS_MAX) return undefined
  if (!lowlight.registered(language)) lowlight.register(language, grammar)
  const spans: StyledSpan[] = []
  flatten([lowlight.highlight(language, code)], 'code', spans)
  return splitLines(spans)
}

function flatten(nodes: readonly Node[], tone: Tone, spans: StyledSpan[]): void {
  for (const { value, properties, children } of nodes) {
    if (value !== undefined) spans.push(span(value, tone))
    if (children) flatten(children, toneOf(properties?.className) ?? tone, spans)
  }
}

function toneOf(names: unknown): Tone | undefined {
  const [name = ''] = Array.isArray(names) ? names.map(String) : []
  return toneOfClass[name.replace(/^hljs-/, '')]
}

function splitLines(spans: readonly StyledSpan[]): Line[] {
  const lines: StyledSpan[][] = [[]]
  for (const { text, tones } of spans)
    for (const [index, part] of text.split('\n').entries()) {
      if (index > 0) lines.push([])
      if (part !== '') lines.at(-1)!.push({ text: part, tones })
    }
  return lines
}
