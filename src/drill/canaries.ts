import { builtInPolicy, enabledPolicyDsl } from '../access/policy/base-policy.ts'
import { evaluatePolicy, type KnownPrincipal, type PolicyRow } from '../access/policy/evaluate.ts'
import { type Policy, parsePolicy } from '../access/policy/parse.ts'
import { randomHex } from '../base/id.ts'
import type { KnowledgeBase } from '../contract/knowledge.ts'

/** A text that only some principals may see. */
export interface Canary {
  /** A word that no request contains, and that every text of the canary contains. */
  readonly secret: string
  /** IDs of the canary, which a response must not contain unless the request does. */
  readonly ids: readonly string[]
  /** IDs of the principals who may see it. */
  readonly viewers: ReadonlySet<string>
}

/** A document with a canary, and a record with the same fields. */
export interface CanaryDocument extends Canary {
  readonly base: CanaryBase
  readonly documentId: string
  readonly jobId: string
  readonly filename: string
}

export interface CanaryRecord extends Canary {
  readonly base: CanaryBase
  readonly recordId: string
}

/** A knowledge base of the drill, with the policy of one or more knowledge bases of the workspace. */
export interface CanaryBase {
  readonly knowledgeBaseId: string
  readonly name: string
  /** Names of the knowledge bases that have this policy. */
  readonly represents: readonly string[]
  /** Null for the built-in policy. */
  readonly dsl: string | null
  readonly policy: Policy
}

/** Fields of a canary that policies can read. */
export interface CanaryFields {
  readonly visibleTo: string[] | null
  readonly owner: string | null
  readonly metadata: Readonly<Record<string, string>>
}

/** A word that all canaries of a drill contain. */
export const sharedWord = 'drillcanary'

const secretPattern = /zq[0-9a-f]{16}/gi

/** Returns a word that is not a part of any other text. */
export function newSecret(): string {
  return `zq${randomHex(8)}`
}

/** Returns the secret words in a text. */
export function secretsIn(text: string): Set<string> {
  return new Set((text.match(secretPattern) ?? []).map(word => word.toLowerCase()))
}

/** Returns the distinct policies of knowledge bases; the built-in policy if there are none. */
export function distinctPolicies(bases: readonly KnowledgeBase[]) {
  const byText = new Map<string | null, string[]>()
  for (const base of bases) {
    const dsl = enabledPolicyDsl(base)
    byText.set(dsl, [...(byText.get(dsl) ?? []), base.name])
  }
  if (byText.size === 0) byText.set(null, [])
  return [...byText].map(([dsl, represents]) => ({
    dsl,
    represents,
    policy: dsl === null ? builtInPolicy.policy : parsePolicy(dsl),
  }))
}

/**
 * Returns the fields of all canaries: for each principal, one that it owns, one that is only visible to it, and one
 * with its attributes as metadata; one that everyone can see, and one that no principal can see.
 */
export function canaryFields(principals: readonly KnownPrincipal[]): CanaryFields[] {
  return [
    { visibleTo: ['*'], owner: null, metadata: {} },
    { visibleTo: null, owner: null, metadata: {} },
    ...principals.flatMap(({ id, attributes }): CanaryFields[] => [
      { visibleTo: [id], owner: null, metadata: {} },
      { visibleTo: null, owner: id, metadata: {} },
      { visibleTo: null, owner: null, metadata: attributes },
    ]),
  ]
}

/** Returns the principals who may see a row, according to the reference evaluator. */
export function viewersOf(
  policy: Policy,
  principals: readonly KnownPrincipal[],
  row: PolicyRow,
): Set<string> {
  return new Set(principals.filter(principal => evaluatePolicy(policy, principal, row)).map(({ id }) => id))
}
