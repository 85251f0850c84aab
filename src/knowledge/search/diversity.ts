import { dotProduct } from '../../base/dot-product.ts'
import { groupBy } from '../../base/group-by.ts'
import { unitVector } from '../../base/unit-vector.ts'
import { terms } from '../../base/words.ts'
import type { SpaceKey } from '../../storage/content.ts'
import { titleOfPayload } from '../payload.ts'
import { sentenceSpaceOf } from '../sentence-space.ts'
import { undefinedIfMissing } from './sentence-search.ts'
import type { ShapedCandidate } from './shaped-candidate.ts'

/** Number of best candidates that are reordered. */
const reorderedMax = 100

/** Returns the similarity of two items, from 0 to 1. */
export type Similarity = (a: number, b: number) => number

/**
 * Moves down those of the first {@link reorderedMax} candidates that resemble a better one. Their scores do not change.
 * Similarity is the cosine of their sentence vectors; if one has none, of their vectors in the knowledge base; if that is not
 * possible, because they are from several knowledge bases or the embedder is not fitted, it is the share of common words.
 */
export async function diversify(
  candidates: readonly ShapedCandidate[],
  diversity: number,
): Promise<ShapedCandidate[]> {
  if (diversity === 0 || candidates.length === 0) return [...candidates]
  const first = candidates.slice(0, reorderedMax)
  const scores = first.map(({ score }) => score)
  const order = maximalMarginalRelevance(scores, diversity, await similarityOf(first))
  const reordered = order.map(({ index, similarity }) => ({ candidate: first[index]!, index, similarity }))
  const others = candidates
    .slice(reorderedMax)
    .map((candidate, index) => ({ candidate, index: reorderedMax + index, similarity: null }))
  return [...reordered, ...others].map(({ candidate, index, similarity }, position) => ({
    ...candidate,
    changes: { ...candidate.changes, diversity: { similarity, from: index + 1, to: position + 1 } },
  }))
}

/**
 * Orders items by relevance, and by their difference from the items before: the next item is the one with the highest
 * (1 - diversity) × relevance - diversity × highest similarity with an item before it. Relevance is the score, scaled
 * to the range from 0 to 1. Of equal items, the one with the lower index comes first.
 *
 * @param scores  best first
 * @returns indexes of all items in the new order, with their highest similarity with an item before; null for the first one
 * @see Carbonell, Goldstein, "The use of MMR, diversity-based reranking", SIGIR 1998
 */
export function maximalMarginalRelevance(
  scores: readonly number[],
  diversity: number,
  similarity: Similarity,
): { index: number; similarity: number | null }[] {
  const [best, worst] = [scores[0]!, scores.at(-1)!]
  const relevanceOf = (score: number) => (best > worst ? (score - worst) / (best - worst) : 1)
  const rest = scores.map((score, index) => ({ index, relevance: relevanceOf(score), similarity: 0 }))
  const order: { index: number; similarity: number | null }[] = []
  while (rest.length > 0) {
    let [bestAt, bestValue] = [0, Number.NEGATIVE_INFINITY]
    for (const [at, item] of rest.entries()) {
      const value = (1 - diversity) * item.relevance - diversity * item.similarity
      if (value > bestValue) [bestAt, bestValue] = [at, value]
    }
    const [next] = rest.splice(bestAt, 1)
    order.push({ index: next!.index, similarity: order.length === 0 ? null : next!.similarity })
    for (const item of rest) item.similarity = Math.max(item.similarity, similarity(item.index, next!.index))
  }
  return order
}

async function similarityOf(candidates: readonly ShapedCandidate[]): Promise<Similarity> {
  const vectors =
    (await readVectors(candidates, sentenceSpace)) ??
    (new Set(candidates.map(({ source }) => source)).size === 1
      ? await readVectors(candidates, defaultSpace)
      : undefined)
  if (vectors) return (a, b) => Math.min(1, Math.max(0, dotProduct(vectors[a]!, vectors[b]!)))
  const words = candidates.map(
    ({ view }) => new Set(terms(`${titleOfPayload(view.payload) ?? ''} ${view.text ?? ''}`)),
  )
  return (a, b) => shareOfCommon(words[a]!, words[b]!)
}

function sentenceSpace({ source }: ShapedCandidate): SpaceKey | undefined {
  const { base, store, key } = source.ranking.context
  return base.semantic === false || !store.spaces ? undefined : sentenceSpaceOf(key)
}

function defaultSpace({ source }: ShapedCandidate): SpaceKey | undefined {
  const { context, plan } = source.ranking
  const { key, collection, isFittedByRuntime } = context
  // An outdated model still contains words of rows that the caller may no longer see.
  const isHidden = collection.isModelOutdated && plan.constraints.visibility.filter
  // Before the first fit, vectors represent only the spelling of words.
  const isPlaceholder = isFittedByRuntime && collection.generation === 0
  return isHidden || isPlaceholder ? undefined : key
}

/** Reads the vectors of candidates, scaled to length 1, in the same order; undefined if one has none. */
async function readVectors(
  candidates: readonly ShapedCandidate[],
  spaceOf: (candidate: ShapedCandidate) => SpaceKey | undefined,
): Promise<Float32Array[] | undefined> {
  const vectors = new Map<ShapedCandidate, Float32Array>()
  for (const [source, group] of groupBy(candidates, candidate => candidate.source)) {
    const space = spaceOf(group[0])
    if (!space) return undefined
    const { context, plan } = source.ranking
    const numbers = group.map(({ record }) => record)
    const { visibility } = plan.constraints
    const views = await context.store
      .read(space, numbers, { vectors: true, visibility })
      .catch(undefinedIfMissing)
    const byRecord = new Map(views?.map(({ record, vector }) => [record, vector]))
    for (const candidate of group) {
      const vector = byRecord.get(candidate.record)
      if (!vector) return undefined
      vectors.set(candidate, unitVector(vector))
    }
  }
  return candidates.map(candidate => vectors.get(candidate)!)
}

/** Returns the size of the intersection of two sets, divided by that of their union; 0 if both are empty. */
function shareOfCommon(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  let common = 0
  for (const word of a) if (b.has(word)) common++
  const all = a.size + b.size - common
  return all === 0 ? 0 : common / all
}
