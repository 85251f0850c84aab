import { shellWord } from '../../base/shell-word.ts'
import { plain, plainJson } from '../../cli/terminal/terminal-text.ts'
import { pathOf } from '../../client/client.ts'
import { kb } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import { rankingSaid } from './ask.ts'
import type { Asked } from './port.ts'
import type { State } from './types.ts'

/** Something else that asks the same. */
export interface Equivalent {
  readonly letter: string
  readonly what: string
  /** Without a credential, and fit for a terminal. */
  readonly text: string
}

/** What finds the same from a shell or a program. */
export function equivalents(state: State, asked: Asked): readonly Equivalent[] {
  return [
    { letter: 'w', what: 'wb', text: wbLine(state, asked) },
    { letter: 'c', what: 'curl', text: curlLines(state, asked) },
    { letter: 't', what: 'TypeScript', text: fetchLines(state, asked) },
  ]
}

/** The command line that shows the same. */
export function wbLine({ about, bases, settings, hasNumbers }: State, { base, body }: Asked): string {
  const { mode, lexicalWeight, rerank } = rankingSaid(base, settings)
  const isShared = bases.filter(({ name }) => name === base.name).length > 1
  const flags = [
    ...(mode ? ['--mode', mode] : []),
    ...(lexicalWeight === undefined ? [] : ['--lexical-weight', String(lexicalWeight)]),
    ...(rerank ? ['--rerank'] : []),
    ...(body.filter ? ['--filter', plainJson(body.filter)] : []),
    ...(body.topK === limits.topKDefault ? [] : ['--limit', String(body.topK)]),
    ...(hasNumbers ? ['--explain'] : []),
    ...about.flags,
  ]
  const question = plain(body.text ?? '')
  const named = ['wb', 'kb', 'search', isShared ? base.id : base.name]
  const words = question.startsWith('-')
    ? [...named, ...flags, '--', question]
    : [...named, question, ...flags]
  return words.map(quoted).join(' ')
}

/** A word as a shell takes it, even where it reads signs within double quotes. */
function quoted(word: string): string {
  return /["\\$`!]/.test(word) ? single(word) : shellWord(word)
}

function single(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

function urlOf({ about }: State, { base }: Asked): string {
  const params = { workspaceId: about.workspaceId, knowledgeBaseId: base.id }
  return about.url.replace(/\/+$/, '') + pathOf(kb.search, { params })
}

function curlLines(state: State, asked: Asked): string {
  const lines = [
    `curl -s ${shellWord(urlOf(state, asked))}`,
    ...(state.about.hasCredential ? ['  -H "authorization: Bearer $WB_API_KEY"'] : []),
    `  -H 'content-type: application/json'`,
    `  -d ${single(plainJson(asked.body))}`,
  ]
  return lines.join(' \\\n')
}

function fetchLines(state: State, asked: Asked): string {
  const body = plainJson(asked.body, 2).replaceAll('\n', '\n  ')
  const { hasCredential } = state.about
  return [
    ...(hasCredential ? [`import { env } from 'node:process'`, ''] : []),
    `const response = await fetch(${plainJson(urlOf(state, asked))}, {`,
    `  method: 'POST',`,
    `  headers: {`,
    `    'content-type': 'application/json',`,
    ...(hasCredential ? [`    authorization: 'Bearer ' + env.WB_API_KEY,`] : []),
    `  },`,
    `  body: JSON.stringify(${body}),`,
    `})`,
    `if (!response.ok) throw new Error(await response.text())`,
    `const hits: { id: string; score: number; payload?: Record<string, unknown> }[] = await response.json()`,
  ].join('\n')
}
