import type { Log } from '../../base/log.ts'
import { WbError } from '../../contract/errors.ts'
import type { RerankingService } from '../../contract/services.ts'
import { ProviderFailure } from '../../models/provider/provider-failure.ts'
import type { Reranker } from '../../models/reranker.ts'
import { embeddedTitle, type RecordView } from '../../storage/content.ts'
import type { Services } from '../../workspaces/services.ts'
import type { BaseContext } from '../knowledge-bases.ts'
import { contextOfPayload, titleOfPayload } from '../payload.ts'
import { toModelText } from '../vector-space.ts'

/** Maximum number of candidates; rankings have at least as many. */
const candidatesMax = 100

/**
 * Maximum number of searches that wait for a service at the same time, by workspace and in total. Each keeps its passages
 * in memory, up to 2.5 MB.
 */
const waitingOfWorkspaceMax = 16
const waitingMax = 64

/** The answer of a reranking service. */
export interface ServiceScores {
  /** Name of the service. */
  readonly service: string
  /** Scores by record number; higher is better. */
  readonly byRecord: ReadonlyMap<number, number>
}

export interface ServiceRerankingParts {
  readonly services: Pick<Services<RerankingService>, 'get'>
  readonly openReranker: (service: RerankingService) => Reranker
  readonly log: Log
}

/** Scores the best candidates of a search with the reranking service of a knowledge base. */
export class ServiceReranking {
  readonly #waiting = new Map<string, number>()

  constructor(private readonly parts: ServiceRerankingParts) {}

  /**
   * Returns the scores of the service; undefined if the service failed, or if too many searches wait for services. Both
   * are logged.
   *
   * @param read  reads those of the given records that the caller may see; only these are sent
   * @throws the reason of the signal
   */
  async score(
    { base: { workspaceId, name, rerankingServiceId } }: BaseContext,
    question: string,
    best: (count: number) => readonly number[],
    read: (records: readonly number[]) => Promise<readonly RecordView[]>,
    signal: AbortSignal,
  ): Promise<ServiceScores | undefined> {
    const { services, openReranker, log } = this.parts
    if (!this.#enter(workspaceId)) {
      log.warn(
        { knowledgeBase: name },
        'too many searches wait for reranking services; a search was not reranked',
      )
      return undefined
    }
    try {
      const service = await services.get(workspaceId, rerankingServiceId!)
      const { candidatesDefault, passageCharsMax, score } = openReranker(service)
      const count = Math.min(service.maxCandidates ?? candidatesDefault, candidatesMax)
      const passages = (await read(best(count))).flatMap(view => {
        const text = textOf(view).slice(0, passageCharsMax).trim()
        return text === '' ? [] : [{ record: view.record, text }]
      })
      const texts = passages.map(({ text }) => text)
      const scores = passages.length === 0 ? [] : await score(question, texts, signal)
      const byRecord = new Map(passages.map(({ record }, index) => [record, scores[index]!]))
      return { service: service.name, byRecord }
    } catch (error) {
      signal.throwIfAborted()
      const isMissing = error instanceof WbError && error.code === 'reranking_service_not_found'
      if (!isMissing && !(error instanceof ProviderFailure)) throw error
      const reason = isMissing ? 'no longer exists' : error.message
      log.warn({ knowledgeBase: name, reason }, 'a reranking service failed; a search was not reranked')
      return undefined
    } finally {
      this.#leave(workspaceId)
    }
  }

  #enter(workspaceId: string): boolean {
    const waiting = this.#waiting.get(workspaceId) ?? 0
    const total = [...this.#waiting.values()].reduce((sum, count) => sum + count, 0)
    if (waiting >= waitingOfWorkspaceMax || total >= waitingMax) return false
    this.#waiting.set(workspaceId, waiting + 1)
    return true
  }

  #leave(workspaceId: string): void {
    const waiting = this.#waiting.get(workspaceId)! - 1
    if (waiting === 0) this.#waiting.delete(workspaceId)
    else this.#waiting.set(workspaceId, waiting)
  }
}

function textOf({ text, payload }: RecordView): string {
  const title = embeddedTitle({ title: titleOfPayload(payload), context: contextOfPayload(payload) })
  return toModelText({ title, text: text ?? '' })
}
