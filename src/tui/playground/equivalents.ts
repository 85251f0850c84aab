import { shellWord, singleQuoted } from '../../base/shell-word.ts'
import { plain, plainJson } from '../../cli/terminal/terminal-text.ts'
import { pathOf } from '../../client/client.ts'
import { kb } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import type { PlaygroundSearch } from './port.ts'
import { changedRanking, changedShaping } from './request.ts'
import type { PlaygroundState } from './types.ts'

/** A command or program that gives the same results as the current search. */
export interface Equivalent {
  readonly letter: string
  readonly name: string
  /** Contains no credential and no control characters. */
  readonly text: string
}

/** Returns commands and programs that give the same results as the current search. */
export function equivalents(state: PlaygroundState, request: PlaygroundSearch): readonly Equivalent[] {
  return [
    { letter: 'w', name: 'wb', text: equivalentCommand(state, request) },
    { letter: 'c', name: 'curl', text: curlCommand(state, request) },
    { letter: 't', name: 'TypeScript', text: typeScriptProgram(state, request) },
  ]
}

/** Returns the `wb` command that gives the same results as the current search. */
export function equivalentCommand(
  { target, bases, settings, showsNumbers, showsReasons }: PlaygroundState,
  { base, body }: PlaygroundSearch,
): string {
  const { mode, lexicalWeight, rerank } = changedRanking(base, settings)
  const shaping = changedShaping(settings)
  const isAmbiguous = bases.filter(({ name }) => name === base.name).length > 1
  const flags = [
    ...(mode ? ['--mode', mode] : []),
    ...(lexicalWeight === undefined ? [] : ['--lexical-weight', String(lexicalWeight)]),
    ...(rerank ? ['--rerank'] : []),
    ...(shaping.diversity === undefined ? [] : ['--diversity', String(shaping.diversity)]),
    ...(shaping.group ? ['--group'] : []),
    ...(shaping.neighbors === undefined ? [] : ['--neighbors', String(shaping.neighbors)]),
    ...(body.filter ? ['--filter', plainJson(body.filter)] : []),
    ...(body.topK === limits.topKDefault ? [] : ['--limit', String(body.topK)]),
    ...(showsNumbers || showsReasons ? ['--explain'] : []),
    ...target.flags,
  ]
  const question = plain(body.text ?? '')
  const commandWords = ['wb', 'kb', 'search', isAmbiguous ? base.id : base.name]
  const words = question.startsWith('-')
    ? [...commandWords, ...flags, '--', question]
    : [...commandWords, question, ...flags]
  return words.map(quoteForShell).join(' ')
}

/** Quotes a word for a shell if necessary. Uses single quotes for characters that are special inside double quotes. */
function quoteForShell(word: string): string {
  return /["\\$`!]/.test(word) ? singleQuoted(word) : shellWord(word)
}

function urlOf({ target }: PlaygroundState, { base }: PlaygroundSearch): string {
  const params = { workspaceId: target.workspaceId, knowledgeBaseId: base.id }
  return target.url.replace(/\/+$/, '') + pathOf(kb.search, { params })
}

function curlCommand(state: PlaygroundState, request: PlaygroundSearch): string {
  const lines = [
    `curl -s ${shellWord(urlOf(state, request))}`,
    ...(state.target.hasCredential ? ['  -H "authorization: Bearer $WB_API_KEY"'] : []),
    `  -H 'content-type: application/json'`,
    `  -d ${singleQuoted(plainJson(request.body))}`,
  ]
  return lines.join(' \\\n')
}

function typeScriptProgram(state: PlaygroundState, request: PlaygroundSearch): string {
  const body = plainJson(request.body, 2).replaceAll('\n', '\n  ')
  const { hasCredential } = state.target
  return [
    ...(hasCredential ? [`import { env } from 'node:process'`, ''] : []),
    `const response = await fetch(${plainJson(urlOf(state, request))}, {`,
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
