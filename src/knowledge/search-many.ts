import pMap from 'p-map'
import { terms } from '../base/words.ts'
import { WbError } from '../contract/errors.ts'
import type { HitOfBase, SearchMany } from '../contract/knowledge.ts'
import { limits } from '../contract/limits.ts'
import type { Scored } from '../storage/content.ts'
import type { BaseContext, KnowledgeBases } from './bases.ts'
import type { KnowledgeFilters } from './filters.ts'
import { fuseEach } from './fusion.ts'
import { unlessGone } from './guards.ts'
import { titleOf } from './payload.ts'
import { modeUsed, ordered, type Ranking, readHits, reranked, Searcher, type Searching } from './search.ts'
import type { Space } from './space.ts'

/** Knowledge bases that are searched at the same time. */
const searchedAtOnce = 4
/** Maximum number of attempts. All but the last met a knowledge base that was deleted after it was ranked. */
const attemptsMax = 8
/** Passages by which it is told how much of a question a knowledge base speaks of. */
const passagesRead = 3
/** Weight of a knowledge base whose best passages hold no word of the question; a full one weighs 1. */
const weightMin = 0.5

interface Parts {
  readonly bases: KnowledgeBases
  readonly space: Space
  readonly filters: KnowledgeFilters
}

/** The caller of a search in several knowledge bases. */
interface SearchingMany extends Searching {
  /** Leaves out named knowledge bases that are deleted in the meantime; otherwise they fail the search. */
  readonly leavesOutDeleted?: boolean
}

/** A candidate among those of other knowledge bases. */
interface Placed extends Scored {
  readonly ranking: Ranking
  /** Decides between equal scores, as within one knowledge base. */
  readonly lexical: number
}

/**
 * Finds passages in several knowledge bases. Each is ranked for itself, by its own statistics: none are ever counted
 * over several, so that a score says nothing of rows that stand elsewhere.
 */
export class ManySearcher {
  constructor(private readonly parts: Parts) {}

  /**
   * The best of all, best first. One knowledge base that cannot be searched fails the whole search; one that is deleted
   * meanwhile does so only where it was named.
   *
   * @throws the codes of a search in one knowledge base, which is named; validation_error for too many
   */
  async search(workspaceId: string, body: SearchMany, caller: SearchingMany) {
    const leavesOut = !body.knowledgeBaseIds || caller.leavesOutDeleted === true
    for (let attempt = 1; ; attempt++) {
      const rankings = await this.rank(workspaceId, body, caller, leavesOut ? unlessGone : rethrow)
      try {
        const best = (await mergeOf(rankings, body.text)).slice(0, body.topK)
        const ignored = [...new Set(rankings.flatMap(one => one.ignored))]
        return { hits: await readPlaced(best), mode: commonMode(rankings), ignored }
      } catch (error) {
        const absence = await this.absenceOf(rankings, error)
        if (absence === undefined || !leavesOut || attempt === attemptsMax) throw absence ?? error
      }
    }
  }

  private async rank(
    workspaceId: string,
    body: SearchMany,
    caller: Searching,
    leftOut: (error: unknown) => undefined,
  ): Promise<Ranking[]> {
    const ids = await this.meant(workspaceId, body)
    if (body.knowledgeFilterId !== undefined && ids.length !== 1)
      throw new WbError(
        'validation_error',
        'knowledgeFilterId: belongs to one knowledge base; name that one alone in knowledgeBaseIds',
      )
    const { bases } = this.parts
    const opened = await Promise.all(ids.map(id => bases.context(workspaceId, id).catch(leftOut)))
    const searcher = new Searcher(onceEach(this.parts.space), this.parts.filters)
    const ranked = await pMap(
      opened.filter(context => context !== undefined),
      context =>
        bases
          .whileThere(context.base, () => searcher.rankFor(context, body, caller))
          .catch(error => rethrowFor(context, error))
          .catch(leftOut),
      { concurrency: searchedAtOnce, signal: caller.signal },
    )
    return ranked.filter(ranking => ranking !== undefined)
  }

  /** Returns the refusal of a knowledge base that was deleted after it was ranked. */
  private async absenceOf(rankings: readonly Ranking[], error: unknown): Promise<unknown> {
    for (const { context } of rankings) {
      const absence = await this.parts.bases.absenceOf(context.base, error)
      if (absence !== undefined) return absence
    }
    return undefined
  }

  /** @throws workspace_not_found, validation_error */
  private async meant(workspaceId: string, { knowledgeBaseIds }: SearchMany): Promise<string[]> {
    if (knowledgeBaseIds) return [...new Set(knowledgeBaseIds)]
    const all = await this.parts.bases.list(workspaceId, { limit: limits.knowledgeBasesPerSearch })
    if (all.nextCursor !== null)
      throw new WbError(
        'validation_error',
        `knowledgeBaseIds: the workspace has more than ${limits.knowledgeBasesPerSearch} knowledge bases; name those to search`,
      )
    return all.items.map(base => base.knowledgeBaseId)
  }
}

/** Returns the mode of all rankings; `mixed` if they differ, `none` if nothing was searched. */
function commonMode(rankings: readonly Ranking[]): string {
  const [mode = 'none', ...others] = new Set(rankings.map(modeUsed))
  return others.length > 0 ? 'mixed' : mode
}

/** One provider is asked for the vector of one question once, however many knowledge bases share it. */
function onceEach(space: Space): Pick<Space, 'embedQuery'> {
  const asked = new Map<string, ReturnType<Space['embedQuery']>>()
  return {
    embedQuery(context, ...question) {
      if (context.fitted) return space.embedQuery(context, ...question)
      const { embeddingServiceId } = context.embedding
      const vector = asked.get(embeddingServiceId) ?? space.embedQuery(context, ...question)
      asked.set(embeddingServiceId, vector)
      return vector
    },
  }
}

/**
 * All candidates, best first, with scores that can be compared.
 *
 * Each knowledge base is ranked as it would be alone, but the scores are stretched over all of them together. Where
 * words are asked for, they are then weighed by the share of those words that the best passages of the knowledge base
 * hold, which takes no statistics: a word that is rare where it is off the topic scores high there, and this holds
 * against it. Of equal scores, the higher lexical score comes first, then the earlier knowledge base.
 *
 * @see Callan, Lu, Croft, "Searching distributed collections with inference networks", 1995, section 5
 */
async function mergeOf(rankings: readonly Ranking[], text: string | undefined): Promise<Placed[]> {
  const placed = areComparable(rankings)
    ? rankings.map(ranking => ordered(ranking).map(scored => ({ ...scored, lexical: 0, ranking })))
    : await stretched(rankings, text)
  return placed.flat().sort((a, b) => b.score - a.score || b.lexical - a.lexical)
}

/** One knowledge base, or similarities in one vector space. */
function areComparable(rankings: readonly Ranking[]): boolean {
  if (rankings.length < 2) return true
  const scales = new Set(rankings.map(({ context }) => scaleOf(context)))
  const isVectorAlone = rankings.every(({ mode, context }) => mode === 'vector' && !context.fitted)
  return isVectorAlone && scales.size === 1
}

async function stretched(rankings: readonly Ranking[], text: string | undefined): Promise<Placed[][]> {
  const fused = fuseEach(rankings.map(({ lists, context }) => ({ ...lists, scale: scaleOf(context) })))
  return pMap(
    rankings,
    async (ranking, at) => {
      const found = reranked(ranking, fused[at]!)
      const weight = text === undefined ? 1 : await weightOf(ranking, found, text)
      return found.map(hit => ({ ...hit, score: weight * hit.score, ranking }))
    },
    { concurrency: searchedAtOnce },
  )
}

/** Says which similarities have a like meaning. Spaces that the runtime fits are made alike. */
function scaleOf({ fitted, embedding }: BaseContext): string {
  const { provider, modelName, embeddingDimension, distanceMetric } = embedding
  return fitted ? provider : JSON.stringify([provider, modelName, embeddingDimension, distanceMetric])
}

async function weightOf(ranking: Ranking, ranked: readonly Scored[], text: string): Promise<number> {
  const best = ranked.slice(0, passagesRead)
  return weightMin + (1 - weightMin) * (await coverage(ranking, best, text))
}

/** Share of the telling words of a question that passages hold, 0 to 1; 1 where no word tells anything. */
async function coverage(ranking: Ranking, passages: readonly Scored[], text: string): Promise<number> {
  const { context, visibility } = ranking
  const asked = new Set(terms(text))
  if (asked.size === 0) return 1
  const numbers = passages.map(({ record }) => record)
  const views = await context.store.read(context.key, numbers, { vectors: false, visibility })
  const held = new Set(views.flatMap(view => terms(`${titleOf(view.payload) ?? ''} ${view.text ?? ''}`)))
  return [...asked].filter(term => held.has(term)).length / asked.size
}

/** Reads what was chosen, knowledge base by knowledge base, and puts it back in order. */
async function readPlaced(best: readonly Placed[]): Promise<HitOfBase[]> {
  const rankings = [...new Set(best.map(({ ranking }) => ranking))]
  const chosenOf = (ranking: Ranking) => best.filter(one => one.ranking === ranking)
  const read = new Map(
    await pMap(rankings, async ranking => [ranking, await readHits(ranking, chosenOf(ranking))] as const, {
      concurrency: searchedAtOnce,
    }),
  )
  return best.flatMap(({ ranking, record }) => {
    const { knowledgeBaseId } = ranking.context.base
    const hit = read.get(ranking)!.get(record)
    return hit ? [{ ...hit, knowledgeBaseId }] : []
  })
}

/** Say which knowledge base it was; one that is not there has said so. */
function rethrowFor({ base: { name } }: BaseContext, error: unknown): never {
  if (!(error instanceof WbError) || error.code === 'knowledge_base_not_found') throw error
  throw new WbError(error.code, `${error.message} (knowledge base '${name}')`, error.facts, { cause: error })
}

function rethrow(error: unknown): never {
  throw error
}
