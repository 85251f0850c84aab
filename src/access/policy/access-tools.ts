import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { compareCodePoints } from '../../base/compare-code-points.ts'
import type {
  AccessExplanation,
  accessTools,
  PolicyChange,
  ToolDocument,
  Viewer,
  VisibleCount,
} from '../../contract/access-tools.ts'
import { WbError } from '../../contract/errors.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import type { PageQuery } from '../../contract/page.ts'
import type { HandlerInput, HandlerReply } from '../../contract/route.ts'
import type { Payload } from '../../storage/content.ts'
import type { Cursors, Pager, RowPage } from '../../storage/cursor.ts'
import { createMatcher } from '../../storage/filter.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type DocumentRow, tables } from '../../storage/tables.ts'
import { principalOfKey } from '../principal-of-key.ts'
import { toActingPrincipal } from '../principals.ts'
import type { AccessHistory, AccessState, RecordedPrincipal } from '../versions/access-history.ts'
import { builtInPolicy, enabledPolicyDsl, type PolicySource } from './base-policy.ts'
import { requirePolicy } from './check.ts'
import { compilePolicy, toFilter } from './compile.ts'
import { type PolicyDocument, policyColumns, policyPayload } from './document-fields.ts'
import type { ActingPrincipal } from './evaluate.ts'
import { explainPolicy, type PolicyExplanation } from './explain.ts'
import { parsePolicy } from './parse.ts'

type Input<K extends keyof typeof accessTools> = HandlerInput<(typeof accessTools)[K]>
type Answer<K extends keyof typeof accessTools> = Extract<
  HandlerReply<(typeof accessTools)[K]>,
  { body: unknown }
>['body']
type Rule = AccessExplanation['rule']

/** The rule that decides in a knowledge base, and its policy; null if everyone sees everything. */
interface AppliedRule {
  readonly rule: Rule
  readonly source: PolicySource | null
}

/** A principal about which a tool answers. `recorded` is undefined if the workspace does not contain it. */
interface Candidate {
  readonly principalId: string
  readonly recorded: RecordedPrincipal | undefined
}

interface AccessToolsDependencies {
  readonly rows: RowStore
  readonly pager: Pager
  readonly cursors: Cursors
  readonly history: AccessHistory
}

/**
 * ID of a principal that represents all principals that are not named anywhere. No principal can have it, because of its
 * first character.
 */
const otherPrincipalId = '\u0001other'
/** Maximum number of principals that the documents of a knowledge base can name in a comparison of policies. */
const namedPrincipalsMax = 100_000
/** Number of principals to check before other work can run. */
const checksPerTurn = 200
/** Number of documents to compare for a page of principals before other work can run. A document takes about 0.2 ms. */
const comparedPerTurn = 50

/** Answers who can see what. All answers are about all documents, whatever the caller can see. */
export class AccessTools {
  constructor(private readonly deps: AccessToolsDependencies) {}

  /** @throws workspace_not_found, knowledge_base_not_found, document_not_found, validation_error */
  async explain({ params: { workspaceId }, body }: Input<'explain'>): Promise<Answer<'explain'>> {
    const state = await this.deps.history.stateAt(workspaceId, body.at)
    const base = await this.#baseAt(state, workspaceId, body.knowledgeBaseId)
    const document = await this.#documentAt(state, base, body.documentId)
    const { rule, source } =
      body.policyDsl === undefined
        ? appliedRule(state, base)
        : { rule: 'proposed' as const, source: parseProposed(body.policyDsl) }
    const recorded = await state.principal(body.principalId)
    const acting = toActingPrincipal(body.principalId, recorded)
    const { isVisible, reasons } = source
      ? explainPolicy(source, acting, policyColumns(document))
      : { isVisible: true, reasons: [] }
    return {
      visible: isVisible,
      rule,
      policy: source?.dsl ?? null,
      principal: { ...toNamed({ principalId: body.principalId, recorded }), attributes: acting.attributes },
      document: toToolDocument(document),
      knowledgeBaseId: base.knowledgeBaseId,
      reasons: reasons.map(toApiReason),
      at: state.at,
    }
  }

  /** @throws workspace_not_found, knowledge_base_not_found, document_not_found, validation_error, invalid_cursor */
  async viewers({ params: { workspaceId }, query, body }: Input<'viewers'>): Promise<Answer<'viewers'>> {
    const state = await this.deps.history.stateAt(workspaceId, body.at)
    const base = await this.#baseAt(state, workspaceId, body.knowledgeBaseId)
    const document = await this.#documentAt(state, base, body.documentId)
    const { rule, source } = appliedRule(state, base)
    const explain = ({ principalId, recorded }: Candidate): PolicyExplanation =>
      source
        ? explainPolicy(source, toActingPrincipal(principalId, recorded), policyColumns(document))
        : { isVisible: true, reasons: [] }
    const list = ['viewers', workspaceId, base.knowledgeBaseId, document.documentId, state.at].join('/')
    const candidates = await this.#candidates(workspaceId, state, namedBy(document))
    const items: Viewer[] = []
    let nextCursor: string | null = null
    for (const [index, candidate] of this.#after(candidates, list, query).entries()) {
      if (index % checksPerTurn === checksPerTurn - 1) await yieldToEventLoop()
      const { isVisible, reasons } = explain(candidate)
      if (!isVisible) continue
      if (items.length === query.limit) {
        nextCursor = this.deps.cursors.encode(list, [items.at(-1)!.principalId])
        break
      }
      items.push({ ...toNamed(candidate), because: [...new Set(reasons.map(textOf))] })
    }
    const { isVisible: everyoneElse } = explain({ principalId: otherPrincipalId, recorded: undefined })
    return { items, nextCursor, rule, policy: source?.dsl ?? null, everyoneElse }
  }

  /** @throws workspace_not_found, knowledge_base_not_found, validation_error, invalid_cursor */
  async documents({
    params: { workspaceId },
    query,
    body: { principalId, knowledgeBaseId, at },
  }: Input<'documents'>): Promise<Answer<'documents'>> {
    const state = await this.deps.history.stateAt(workspaceId, at)
    const base = await this.#baseAt(state, workspaceId, knowledgeBaseId)
    const acting = toActingPrincipal(principalId, await state.principal(principalId))
    const isVisible = visibilityTest(appliedRule(state, base), acting)
    const list = {
      index: 'byKnowledgeBase',
      prefix: [workspaceId, knowledgeBaseId],
      filter: `${principalId}@${at}`,
    }
    const page = await this.deps.pager.searchPage(tables.documents, list, query, {
      finds: async row => isVisible(policyPayload(await state.document(row))),
      isExhausted: false,
    })
    return { ...page, items: page.items.map(toToolDocument) }
  }

  /** @throws workspace_not_found, validation_error, invalid_cursor */
  async counts(
    { params: { workspaceId }, query, body: { principalId, at } }: Input<'counts'>,
    signal: AbortSignal,
  ): Promise<Answer<'counts'>> {
    const state = await this.deps.history.stateAt(workspaceId, at)
    const acting = toActingPrincipal(principalId, await state.principal(principalId))
    const page = await this.#listBases(workspaceId, query)
    const items: VisibleCount[] = []
    for (const current of page.items) {
      const base = await state.knowledgeBase(current)
      if (base) items.push(await this.#countVisible(state, base, acting, signal))
    }
    return { ...page, items }
  }

  /** @throws workspace_not_found, knowledge_base_not_found, validation_error, invalid_cursor */
  async diff(
    { params: { workspaceId }, query, body: { knowledgeBaseId, policyDsl, documentsListed } }: Input<'diff'>,
    signal: AbortSignal,
  ): Promise<Answer<'diff'>> {
    const state = await this.deps.history.stateAt(workspaceId, undefined)
    const base = await this.#baseAt(state, workspaceId, knowledgeBaseId)
    const [before, after] = [
      appliedPolicy(base),
      policyDsl === null ? builtInRule : { rule: 'proposed' as const, source: parseProposed(policyDsl) },
    ]
    const list = ['diff', workspaceId, knowledgeBaseId].join('/')
    const candidates = await this.#candidates(workspaceId, state, await this.#namedIn(base, signal))
    const remaining = this.#after(candidates, list, query)
    const examined = remaining.slice(0, query.limit)
    const comparison = ({ principalId, recorded }: Candidate): Comparison => {
      const acting = toActingPrincipal(principalId, recorded)
      return {
        wasVisible: visibilityTest(before, acting),
        isVisible: visibilityTest(after, acting),
        change: { gains: noDocuments(), loses: noDocuments() },
      }
    }
    const comparisons = examined.map(candidate => ({ candidate, ...comparison(candidate) }))
    const other = comparison({ principalId: otherPrincipalId, recorded: undefined })
    const all = [...comparisons, other]
    let documents = 0
    for await (const document of this.#documentsOf(base, signal)) {
      const payload = policyPayload(document)
      for (const compared of all) addChange(compared, document, payload, documentsListed)
      if (++documents % comparedPerTurn === 0) await yieldToEventLoop()
    }
    const last = remaining.length > examined.length ? examined.at(-1) : undefined
    return {
      items: comparisons.flatMap(({ candidate, change }): PolicyChange[] =>
        change.gains.total + change.loses.total > 0 ? [{ ...toNamed(candidate), ...change }] : [],
      ),
      nextCursor: last ? this.deps.cursors.encode(list, [last.principalId]) : null,
      everyoneElse: other.change,
      rlacEnabled: state.rlacEnabled,
    }
  }

  async #countVisible(
    state: AccessState,
    base: KnowledgeBase,
    acting: ActingPrincipal,
    signal: AbortSignal,
  ): Promise<VisibleCount> {
    const applied = appliedRule(state, base)
    const isVisible = visibilityTest(applied, acting)
    const counts = { visible: 0, total: 0 }
    for await (const document of this.#documentsOf(base, signal)) {
      counts.total++
      if (isVisible(policyPayload(await state.document(document)))) counts.visible++
    }
    const { knowledgeBaseId, name } = base
    return { knowledgeBaseId, name, rule: applied.rule, ...counts }
  }

  async *#documentsOf(
    { workspaceId, knowledgeBaseId }: KnowledgeBase,
    signal: AbortSignal,
  ): AsyncGenerator<DocumentRow> {
    const list = { index: 'byKnowledgeBase', prefix: [workspaceId, knowledgeBaseId] }
    for await (const slice of this.deps.pager.slices(tables.documents, list))
      for (const { row } of slice) {
        signal.throwIfAborted()
        yield row
      }
  }

  #listBases(workspaceId: string, query: PageQuery): Promise<RowPage<KnowledgeBase>> {
    return this.deps.pager.page(tables.knowledgeBases, { index: 'byWorkspace', prefix: [workspaceId] }, query)
  }

  async #baseAt(state: AccessState, workspaceId: string, knowledgeBaseId: string): Promise<KnowledgeBase> {
    const stored = await this.deps.rows.get(tables.knowledgeBases, [workspaceId, knowledgeBaseId])
    const base = stored && (await state.knowledgeBase(stored.row))
    if (base) return base
    throw new WbError(
      'knowledge_base_not_found',
      stored
        ? `knowledge base '${stored.row.name}' did not exist at ${state.at}`
        : `knowledge base '${knowledgeBaseId}' not found`,
    )
  }

  async #documentAt(
    state: AccessState,
    { workspaceId, knowledgeBaseId }: KnowledgeBase,
    documentId: string,
  ): Promise<DocumentRow> {
    const stored = await this.deps.rows.get(tables.documents, [workspaceId, knowledgeBaseId, documentId])
    if (stored) return state.document(stored.row)
    throw new WbError('document_not_found', `document '${documentId}' not found`)
  }

  /**
   * Returns the principals about which a tool can answer, sorted by ID: those of the workspace, those of its API keys, and
   * named ones.
   */
  async #candidates(
    workspaceId: string,
    state: AccessState,
    named: ReadonlySet<string>,
  ): Promise<Candidate[]> {
    const recorded = await state.principals()
    const ids = new Set([...named, ...(await this.#keyPrincipals(workspaceId))])
    for (const { principalId } of recorded) ids.delete(principalId)
    const others = [...ids].map((principalId): Candidate => ({ principalId, recorded: undefined }))
    return [...recorded.map(row => ({ principalId: row.principalId, recorded: row })), ...others].sort(
      (a, b) => compareCodePoints(a.principalId, b.principalId),
    )
  }

  async #keyPrincipals(workspaceId: string): Promise<string[]> {
    const found: string[] = []
    const list = { index: 'byWorkspace', prefix: [workspaceId] }
    for await (const slice of this.deps.pager.slices(tables.apiKeys, list))
      found.push(...slice.filter(({ row }) => row.revokedAt === null).map(({ row }) => principalOfKey(row)))
    return found
  }

  /** @throws validation_error  the documents name too many principals */
  async #namedIn(base: KnowledgeBase, signal: AbortSignal): Promise<Set<string>> {
    const named = new Set<string>()
    for await (const document of this.#documentsOf(base, signal)) {
      for (const principalId of namedBy(document)) named.add(principalId)
      if (named.size > namedPrincipalsMax)
        throw new WbError(
          'validation_error',
          `the documents of the knowledge base name more than ${namedPrincipalsMax} principals`,
        )
    }
    return named
  }

  /** @throws invalid_cursor */
  #after(candidates: readonly Candidate[], list: string, { cursor }: PageQuery): Candidate[] {
    if (cursor === undefined) return [...candidates]
    const [last] = this.deps.cursors.decode(list, cursor)
    return candidates.filter(({ principalId }) => compareCodePoints(principalId, String(last)) > 0)
  }
}

/** A comparison of two policies for one principal. */
interface Comparison {
  readonly wasVisible: VisibilityTest
  readonly isVisible: VisibilityTest
  readonly change: Pick<PolicyChange, 'gains' | 'loses'>
}

function addChange(
  { wasVisible, isVisible, change }: Comparison,
  document: DocumentRow,
  payload: Payload,
  listed: number,
): void {
  const [was, is] = [wasVisible(payload), isVisible(payload)]
  if (was === is) return
  const changed = is ? change.gains : change.loses
  changed.total++
  if (changed.documents.length < listed) changed.documents.push(toToolDocument(document))
}

function noDocuments(): PolicyChange['gains'] {
  return { total: 0, documents: [] }
}

const builtInRule: AppliedRule = { rule: 'builtIn', source: builtInPolicy }

function appliedPolicy(base: KnowledgeBase): AppliedRule {
  const dsl = enabledPolicyDsl(base)
  return dsl === null ? builtInRule : { rule: 'policy', source: { dsl, policy: parsePolicy(dsl) } }
}

function appliedRule({ rlacEnabled }: AccessState, base: KnowledgeBase): AppliedRule {
  return rlacEnabled ? appliedPolicy(base) : { rule: 'off', source: null }
}

/** @throws validation_error  the policy is invalid */
function parseProposed(dsl: string): PolicySource {
  return { dsl, policy: requirePolicy('policyDsl', dsl) }
}

/** Returns true for the payload of a document that a principal sees. */
type VisibilityTest = (payload: Payload) => boolean

/** Returns a test of the documents that a principal sees, as the store filters them. */
function visibilityTest({ source }: AppliedRule, acting: ActingPrincipal): VisibilityTest {
  return createMatcher(source ? toFilter(compilePolicy(source.policy, acting)) : undefined)
}

function namedBy({ visibleTo, ownerPrincipalId }: PolicyDocument): Set<string> {
  const named = new Set(visibleTo)
  if (ownerPrincipalId !== null) named.add(ownerPrincipalId)
  named.delete('*')
  return named
}

function toNamed({ principalId, recorded }: Candidate) {
  return { principalId, label: recorded?.label ?? null, role: recorded?.role ?? null }
}

function toToolDocument({
  documentId,
  sourceFilename,
  ownerPrincipalId,
  visibleTo,
}: DocumentRow): ToolDocument {
  return { documentId, sourceFilename, ownerPrincipalId, visibleTo }
}

function toApiReason({ isNegated, values, ...reason }: PolicyExplanation['reasons'][number]) {
  return {
    ...reason,
    negated: isNegated,
    values: values.map(({ isMissing, ...value }) => ({ ...value, missing: isMissing })),
  }
}

function textOf({ text, isNegated }: PolicyExplanation['reasons'][number]): string {
  return isNegated ? `NOT ${text}` : text
}
