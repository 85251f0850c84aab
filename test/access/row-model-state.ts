import { compilePolicy } from '../../src/access/policy/compile.ts'
import { type ActingPrincipal, evaluatePolicy } from '../../src/access/policy/evaluate.ts'
import { type Policy, parsePolicy } from '../../src/access/policy/parse.ts'
import type { ChatServer } from '../fakes/chat-server.ts'
import type { TestResponse } from '../harness/runtime.ts'
import type { JsonObject, Send } from './principal-requests.ts'
import type { Draw } from './random-policies.ts'

/** The runtime that the model changes and asks. */
export interface ModelTarget {
  /** Sends a request as a principal, with the scopes of an editor. */
  as(principalId: string): Send
  /** Sends a request as the operator, who sees all rows. */
  readonly operator: Send
  /** Owner of the rows that the operator adds; null if it is no principal. */
  readonly operatorId: string | null
  /** Path of a workspace with row-level access. */
  readonly workspace: string
  /** A fake model for the agent `maven`, which exists in the workspace. */
  readonly agent: { readonly agentId: string; readonly model: ChatServer }
}

/** Counts and findings of all comparisons. A decision is the answer of one request about one row. */
interface ModelReport {
  changes: number
  answers: number
  decisions: number
  /** Rows that an answer contained, and the reference hides, with the request. */
  readonly leaks: string[]
  /** Rows that an answer did not contain, and the reference shows, with the request. */
  readonly refusals: string[]
}

export type Scalar = string | number | boolean | null

export interface ModelRow {
  /** ID of the document or record. */
  readonly id: string
  readonly kind: 'document' | 'record'
  /** A word that only this row contains; null for a document without content. */
  readonly word: string | null
  metadata: Record<string, Scalar>
  visibleTo: readonly string[] | null
  owner: string | null
  readonly filename: string | null
}

export interface ModelBase {
  readonly path: string
  readonly knowledgeBaseId: string
  readonly filterId: string
  /** In the order in which they were added. */
  rows: ModelRow[]
  /** Deleted documents. */
  trash: ModelRow[]
  policy: { dsl: string; parsed: Policy; isEnabled: boolean }
}

export interface ModelJob {
  readonly jobId: string
  readonly base: ModelBase
  readonly documentId: string
}

export interface ModelAnswer {
  readonly principalId: string
  readonly path: string
  /** Documents that the answer cites. */
  readonly cited: readonly { knowledgeBaseId: string; documentId: string }[]
}

export const builtInDsl =
  "$principal.admin = 'true' OR current_principal_id() = ANY(visible_to) OR '*' = ANY(visible_to)"
export const principalIds = ['ada', 'bob', 'cyd', 'dan', 'root'] as const
/** Principals that send requests. `eve` has no record in the workspace. */
export const callers = [...principalIds, 'eve'] as const
/** Names of files that are ingested. Each is described as a folder. */
export const fileNames = ['0.md', '1.md', '2.md', '3.md'] as const
export const savedFilter = { team: 'red' }

/** Returns a generator of random numbers. Equal seeds give equal numbers. */
export function createDraw(seed: number): Draw {
  let state = seed >>> 0
  /** @see https://gist.github.com/tommyettinger/46a874533244883189143505d203312c */
  const next = () => {
    state = (state + 0x6d2b_79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    below: limit => Math.floor(next() * limit),
    chance: share => next() < share,
    pick: list => list[Math.floor(next() * list.length)]!,
  }
}

/** The rows that a workspace must contain, and the reference that decides who sees them. */
export class RowModelState {
  readonly report: ModelReport = { changes: 0, answers: 0, decisions: 0, leaks: [], refusals: [] }
  readonly principals = new Map<string, ActingPrincipal>()
  readonly bases: ModelBase[] = []
  readonly jobs: ModelJob[] = []
  readonly answers: ModelAnswer[] = []

  constructor(
    readonly target: ModelTarget,
    readonly draw: Draw,
  ) {}

  acting(principalId: string): ActingPrincipal {
    return this.principals.get(principalId) ?? { id: principalId, attributes: {} }
  }

  sees(principalId: string | null, base: ModelBase, row: ModelRow): boolean {
    if (principalId === null) return true
    return evaluatePolicy(policyOf(base), this.acting(principalId), columnsOf(row))
  }

  visibleRows(principalId: string, base: ModelBase): ModelRow[] {
    return base.rows.filter(row => this.sees(principalId, base, row))
  }

  /** Returns true if the policy lets a principal see all rows, whatever they contain. */
  seesEverything(principalId: string, base: ModelBase): boolean {
    const compiled = compilePolicy(policyOf(base), this.acting(principalId))
    return compiled.kind === 'constant' && compiled.value
  }

  reportLeak(description: string): void {
    this.report.leaks.push(`after change ${this.report.changes}: ${description}`)
  }

  reportRefusal(description: string): void {
    this.report.refusals.push(`after change ${this.report.changes}: ${description}`)
  }

  /** Compares the rows of an answer with those that the reference shows. */
  compare(question: string, rows: readonly string[], expected: readonly string[], found: Iterable<string>) {
    const [shown, answered] = [new Set(expected), new Set(found)]
    this.report.answers++
    this.report.decisions += rows.length
    for (const id of answered) if (!shown.has(id)) this.reportLeak(`${question}: ${id}`)
    for (const id of shown) if (!answered.has(id)) this.reportRefusal(`${question}: ${id}`)
  }

  /** Compares the outcome of a request about one row. */
  decide(question: string, isAllowed: boolean, answer: TestResponse, [allowed, denied]: [number, number]) {
    this.report.answers++
    this.report.decisions++
    const { status, text } = answer
    const description = `${question}: ${status} ${text.slice(0, 200)}`
    if (isAllowed && status !== allowed) this.reportRefusal(description)
    if (!isAllowed && status !== denied) this.reportLeak(description)
  }

  drawBase(): ModelBase {
    return this.draw.pick(this.bases)
  }

  /** Returns a document that matters for a change; undefined without documents of the kind. */
  drawRow(base: ModelBase, kind: ModelRow['kind']): ModelRow | undefined {
    return this.draw.pick(base.rows.filter(row => row.kind === kind))
  }

  /**
   * Compares the words of rows in a text with those of visible rows. Rows with the same text have the same word.
   *
   * @param answer.isPartial  true if the text may contain only some of the visible rows
   */
  compareWords(
    question: string,
    answer: { rows: readonly ModelRow[]; visible: readonly ModelRow[]; text: string; isPartial: boolean },
  ): void {
    const { text, isPartial } = answer
    const all = wordsOf(answer.rows)
    const found = all.filter(word => text.includes(word))
    const shown = wordsOf(answer.visible)
    const expected = isPartial && found.length > 0 ? shown.filter(word => found.includes(word)) : shown
    this.compare(question, all, expected, found)
  }
}

const builtInPolicy = parsePolicy(builtInDsl)

function policyOf({ policy }: ModelBase): Policy {
  return policy.isEnabled ? policy.parsed : builtInPolicy
}

/** Returns the columns of a row, as docs/access.md defines them. */
export function columnsOf({
  metadata,
  visibleTo,
  owner,
  filename,
}: Pick<ModelRow, 'metadata' | 'visibleTo' | 'owner' | 'filename'>): JsonObject {
  const { owner_id: _, source_filename: __, ...fields } = metadata
  return {
    ...fields,
    ...(visibleTo && { visible_to: visibleTo }),
    ...(owner !== null && { owner_id: owner, owner_principal_id: owner }),
    ...(filename !== null && { source_filename: filename }),
  }
}

export function idsOf(rows: readonly ModelRow[]): string[] {
  return rows.map(({ id }) => id)
}

function wordsOf(rows: readonly ModelRow[]): string[] {
  return [...new Set(rows.flatMap(({ word }) => word ?? []))]
}

/** Returns the cited documents of an answer, without passages that were stored directly. */
export function citedDocuments({ citations = '[]' }: Record<string, string>): ModelAnswer['cited'] {
  const all = JSON.parse(citations) as { knowledgeBaseId: string | null; documentId: string | null }[]
  return all.flatMap(({ knowledgeBaseId, documentId }) =>
    knowledgeBaseId !== null && documentId !== null ? [{ knowledgeBaseId, documentId }] : [],
  )
}
