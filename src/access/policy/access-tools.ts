import { compareCodePoints } from '../../base/compare-code-points.ts'
import { sortInTurns } from '../../base/sort-in-turns.ts'
import { WorkPacer } from '../../base/work-pacer.ts'
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
import { limits } from '../../contract/limits.ts'
import type { PageQuery } from '../../contract/page.ts'
import type { HandlerInput, HandlerReply } from '../../contract/route.ts'
import type { Payload } from '../../storage/content.ts'
import type { Cursors, Pager } from '../../storage/cursor.ts'
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
import { decidePolicy, explainPolicy, type PolicyExplanation } from './explain.ts'
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
/** Maximum number of principals that the examined documents can name. */
const namedPrincipalsMax = 100_000
/**
 * Maximum total length of the policies that a page of a comparison evaluates for a document. It limits the time and the
 * memory of a page whose policies are long.
 */
const comparedPolicyChars = 200_000
/** Maximum total length of the documents that a page of a comparison lists, as JSON. */
const listedCharsMax = 2_000_000
/** Total length of the documents, in characters of JSON, after which a page of a list of documents ends early. */
const searchedCharsMax = 16_000_000
/** Number of documents after which a page of counts ends early, with a whole knowledge base. */
const countedDocuments = 10_000

/** Reports who can see which documents. The results include documents that the caller cannot see. */
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
    const { isVisible, reasons, reasonsTotal } = source
      ? explainPolicy(source, acting, policyColumns(document))
      : { isVisible: true, reasons: [], reasonsTotal: 0 }
    return {
      visible: isVisible,
      rule,
      policy: source?.dsl ?? null,
      principal: { ...toNamed({ principalId: body.principalId, recorded }), attributes: acting.attributes },
      document: toToolDocument(document),
      knowledgeBaseId: base.knowledgeBaseId,
      reasons: reasons.map(toApiReason),
      reasonsTotal,
      at: state.at,
    }
  }

  /** @throws workspace_not_found, knowledge_base_not_found, document_not_found, validation_error, invalid_cursor */
  async viewers(
    { params: { workspaceId }, query, body }: Input<'viewers'>,
    signal: AbortSignal,
  ): Promise<Answer<'viewers'>> {
    const state = await this.deps.history.stateAt(workspaceId, body.at)
    const base = await this.#baseAt(state, workspaceId, body.knowledgeBaseId)
    const document = await this.#documentAt(state, base, body.documentId)
    const { rule, source } = appliedRule(state, base)
    const columns = policyColumns(document)
    const decide = ({ principalId, recorded }: Candidate) =>
      source
        ? decidePolicy(source, toActingPrincipal(principalId, recorded), columns)
        : { isVisible: true, conditions: [] }
    const pacer = new WorkPacer(signal)
    const list = ['viewers', workspaceId, base.knowledgeBaseId, document.documentId, state.at].join('/')
    const named = addNamedPrincipals(new Set(), document)
    const candidates = await this.#candidates(workspaceId, state, named, pacer)
    const items: Viewer[] = []
    let nextCursor: string | null = null
    for (const candidate of this.#afterCursor(candidates, list, query)) {
      if (pacer.isDue) await pacer.yield()
      const { isVisible, conditions } = decide(candidate)
      if (!isVisible) continue
      if (items.length === query.limit) {
        nextCursor = this.deps.cursors.encode(list, [items.at(-1)!.principalId])
        break
      }
      items.push({ ...toNamed(candidate), because: [...new Set(conditions.map(textOf))] })
    }
    const { isVisible: everyoneElse } = decide({ principalId: otherPrincipalId, recorded: undefined })
    return { items, nextCursor, rule, policy: source?.dsl ?? null, everyoneElse }
  }

  /** @throws workspace_not_found, knowledge_base_not_found, validation_error, invalid_cursor */
  async documents(
    { params: { workspaceId }, query, body: { principalId, knowledgeBaseId, at } }: Input<'documents'>,
    signal: AbortSignal,
  ): Promise<Answer<'documents'>> {
    const state = await this.deps.history.stateAt(workspaceId, at)
    const base = await this.#baseAt(state, workspaceId, knowledgeBaseId)
    const acting = toActingPrincipal(principalId, await state.principal(principalId))
    const isVisible = visibilityTest(appliedRule(state, base).source, acting)
    const list = {
      index: 'byKnowledgeBase',
      prefix: [workspaceId, knowledgeBaseId],
      filter: `${principalId}@${at}`,
    }
    const pacer = new WorkPacer(signal)
    let charsLeft = searchedCharsMax
    return this.deps.pager.searchPage(tables.documents, list, query, {
      async select({ row, text }) {
        charsLeft -= text.length
        if (pacer.isDue) await pacer.yield()
        const document = await state.document(row)
        return isVisible(policyPayload(document)) ? toToolDocument(document) : undefined
      },
      get isExhausted() {
        return charsLeft <= 0
      },
    })
  }

  /** @throws workspace_not_found, validation_error, invalid_cursor */
  async counts(
    { params: { workspaceId }, query, body: { principalId, at } }: Input<'counts'>,
    signal: AbortSignal,
  ): Promise<Answer<'counts'>> {
    const state = await this.deps.history.stateAt(workspaceId, at)
    const acting = toActingPrincipal(principalId, await state.principal(principalId))
    const pacer = new WorkPacer(signal)
    const list = { index: 'byWorkspace', prefix: [workspaceId] }
    let counted = 0
    return this.deps.pager.searchPage(tables.knowledgeBases, list, query, {
      select: async ({ row }) => {
        const base = await state.knowledgeBase(row)
        if (!base) return undefined
        const count = await this.#countVisible(state, base, acting, pacer)
        counted += count.total
        return count
      },
      get isExhausted() {
        return counted >= countedDocuments
      },
    })
  }

  /** @throws workspace_not_found, knowledge_base_not_found, validation_error, invalid_cursor */
  async diff(
    { params: { workspaceId }, query, body: { knowledgeBaseId, policyDsl, documentsListed } }: Input<'diff'>,
    signal: AbortSignal,
  ): Promise<Answer<'diff'>> {
    const state = await this.deps.history.stateAt(workspaceId, undefined)
    const base = await this.#baseAt(state, workspaceId, knowledgeBaseId)
    const pacer = new WorkPacer(signal)
    const before = policyOf(base)
    const after = policyDsl === null ? builtInPolicy : parseProposed(policyDsl)
    const list = ['diff', workspaceId, knowledgeBaseId].join('/')
    const named = await this.#principalsNamedIn(base, pacer)
    const candidates = await this.#candidates(workspaceId, state, named, pacer)
    const remaining = this.#afterCursor(candidates, list, query)
    const comparisons: Comparison[] = []
    for (const candidate of remaining.slice(0, examinedMax(query, before, after))) {
      comparisons.push(createComparison(candidate, before, after))
      if (pacer.isDue) await pacer.yield()
    }
    const other = createComparison({ principalId: otherPrincipalId, recorded: undefined }, before, after)
    let listedChars = 0
    for await (const document of this.#documentsOf(base, pacer)) {
      const compared = { payload: policyPayload(document), listed: toToolDocument(document) }
      const chars = JSON.stringify(compared.listed).length
      for (const comparison of [other, ...comparisons]) {
        if (addChange(comparison, compared, documentsListed)) comparison.listedChars += chars
        if (pacer.isDue) await pacer.yield()
      }
      listedChars = comparisons.reduce((sum, comparison) => sum + comparison.listedChars, 0)
      // The next page repeats the comparison for the principals that are removed.
      while (listedChars > listedCharsMax && comparisons.length > 1)
        listedChars -= comparisons.pop()!.listedChars
    }
    const last = remaining.length > comparisons.length ? comparisons.at(-1)?.candidate : undefined
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
    pacer: WorkPacer,
  ): Promise<VisibleCount> {
    const { rule, source } = appliedRule(state, base)
    const isVisible = visibilityTest(source, acting)
    const counts = { visible: 0, total: 0 }
    for await (const document of this.#documentsOf(base, pacer)) {
      counts.total++
      if (isVisible(policyPayload(await state.document(document)))) counts.visible++
    }
    const { knowledgeBaseId, name } = base
    return { knowledgeBaseId, name, rule, ...counts }
  }

  async *#documentsOf(
    { workspaceId, knowledgeBaseId }: KnowledgeBase,
    pacer: WorkPacer,
  ): AsyncGenerator<DocumentRow> {
    const list = { index: 'byKnowledgeBase', prefix: [workspaceId, knowledgeBaseId] }
    for await (const slice of this.deps.pager.slices(tables.documents, list))
      for (const { row } of slice) {
        yield row
        if (pacer.isDue) await pacer.yield()
      }
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
    pacer: WorkPacer,
  ): Promise<Candidate[]> {
    const recorded = await state.principals()
    const ids = new Set([...named, ...(await this.#keyPrincipals(workspaceId))])
    for (const { principalId } of recorded) ids.delete(principalId)
    const others = [...ids].map((principalId): Candidate => ({ principalId, recorded: undefined }))
    const all = [...recorded.map(row => ({ principalId: row.principalId, recorded: row })), ...others]
    return sortInTurns(all, (a, b) => compareCodePoints(a.principalId, b.principalId), pacer)
  }

  async #keyPrincipals(workspaceId: string): Promise<string[]> {
    const found: string[] = []
    const list = { index: 'byWorkspace', prefix: [workspaceId] }
    for await (const slice of this.deps.pager.slices(tables.apiKeys, list))
      found.push(...slice.filter(({ row }) => row.revokedAt === null).map(({ row }) => principalOfKey(row)))
    return found
  }

  /** @throws validation_error  the documents name too many principals */
  async #principalsNamedIn(base: KnowledgeBase, pacer: WorkPacer): Promise<Set<string>> {
    const named = new Set<string>()
    for await (const document of this.#documentsOf(base, pacer)) addNamedPrincipals(named, document)
    return named
  }

  /** @throws invalid_cursor */
  #afterCursor(candidates: readonly Candidate[], list: string, { cursor }: PageQuery): Candidate[] {
    if (cursor === undefined) return [...candidates]
    const [last] = this.deps.cursors.decode(list, cursor)
    return candidates.filter(({ principalId }) => compareCodePoints(principalId, String(last)) > 0)
  }
}

/** A comparison of two policies for one principal. */
interface Comparison {
  readonly candidate: Candidate
  readonly wasVisible: VisibilityTest
  readonly isVisible: VisibilityTest
  readonly change: Pick<PolicyChange, 'gains' | 'loses'>
  /** Total length of the listed documents, as JSON. */
  listedChars: number
}

function createComparison(candidate: Candidate, before: PolicySource, after: PolicySource): Comparison {
  const acting = toActingPrincipal(candidate.principalId, candidate.recorded)
  return {
    candidate,
    wasVisible: visibilityTest(before, acting),
    isVisible: visibilityTest(after, acting),
    change: { gains: noDocuments(), loses: noDocuments() },
    listedChars: 0,
  }
}

/** Returns the maximum number of principals to examine for a page. */
function examinedMax({ limit }: PageQuery, before: PolicySource, after: PolicySource): number {
  const affordable = Math.floor(comparedPolicyChars / (before.dsl.length + after.dsl.length))
  return Math.min(limit, affordable)
}

/** Adds a document to the changes of a principal, if it changes. Returns true if the document is listed. */
function addChange(
  { wasVisible, isVisible, change }: Comparison,
  { payload, listed }: { payload: Payload; listed: ToolDocument },
  listedMax: number,
): boolean {
  const [was, is] = [wasVisible(payload), isVisible(payload)]
  if (was === is) return false
  const changed = is ? change.gains : change.loses
  changed.total++
  if (changed.documents.length >= listedMax) return false
  changed.documents.push(listed)
  return true
}

function noDocuments(): PolicyChange['gains'] {
  return { total: 0, documents: [] }
}

/** Returns the policy that applies to a knowledge base while row-level access is on. */
function policyOf(base: KnowledgeBase): PolicySource {
  const dsl = enabledPolicyDsl(base)
  return dsl === null ? builtInPolicy : { dsl, policy: parsePolicy(dsl) }
}

function appliedRule({ rlacEnabled }: AccessState, base: KnowledgeBase): AppliedRule {
  if (!rlacEnabled) return { rule: 'off', source: null }
  const source = policyOf(base)
  return { rule: source === builtInPolicy ? 'builtIn' : 'policy', source }
}

/** @throws validation_error  the policy is invalid */
function parseProposed(dsl: string): PolicySource {
  return { dsl, policy: requirePolicy('policyDsl', dsl) }
}

/** Returns true for the payload of a document that a principal sees. */
type VisibilityTest = (payload: Payload) => boolean

/** Returns a test of the documents that a principal sees, as the store filters them. */
function visibilityTest(source: PolicySource | null, acting: ActingPrincipal): VisibilityTest {
  return createMatcher(source ? toFilter(compilePolicy(source.policy, acting)) : undefined)
}

/**
 * Adds the principals that a document names to a set, and returns the set.
 *
 * @throws validation_error  the set gets too large
 */
function addNamedPrincipals(
  named: Set<string>,
  { visibleTo, ownerPrincipalId }: PolicyDocument,
): Set<string> {
  for (const names of [visibleTo, ownerPrincipalId === null ? null : [ownerPrincipalId]])
    for (const name of names ?? []) {
      if (name === '*' || name.length > limits.subjectChars) continue
      named.add(name)
      if (named.size > namedPrincipalsMax)
        throw new WbError(
          'validation_error',
          `the documents name more than ${namedPrincipalsMax} principals, which are too many to examine`,
        )
    }
  return named
}

function toNamed({ principalId, recorded }: Candidate) {
  return { principalId, label: recorded?.label ?? null, role: recorded?.role ?? null }
}

/** Returns a document with cut names, so that its length is limited. */
function toToolDocument({
  documentId,
  sourceFilename,
  ownerPrincipalId,
  visibleTo,
}: DocumentRow): ToolDocument {
  return {
    documentId,
    sourceFilename: sourceFilename && cutName(sourceFilename),
    ownerPrincipalId: ownerPrincipalId && cutName(ownerPrincipalId),
    visibleTo: visibleTo?.slice(0, limits.shownItems).map(cutName) ?? null,
    visibleToTotal: visibleTo?.length ?? null,
  }
}

function cutName(name: string): string {
  if (name.length <= limits.shownNameChars) return name
  // A copy, because a part of a string keeps the whole string in memory.
  return Buffer.from(`${name.slice(0, limits.shownNameChars)}…`).toString()
}

function toApiReason({ isNegated, values, ...reason }: PolicyExplanation['reasons'][number]) {
  return {
    ...reason,
    negated: isNegated,
    values: values.map(({ name, value, isCut, isMissing }) => ({
      name,
      value,
      cut: isCut,
      missing: isMissing,
    })),
  }
}

function textOf({ text, isNegated }: { text: string; isNegated: boolean }): string {
  return isNegated ? `NOT ${text}` : text
}
