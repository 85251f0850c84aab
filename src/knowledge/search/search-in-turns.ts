import type { CallerQueue, QueuedCaller } from '../../access/caller-queue.ts'

/** The steps of a search. `P` is a prepared search, `R` its ranking, and `T` its result. */
export interface SearchSteps<P, R, T> {
  prepare(): Promise<P>
  /** Prepares the search again, with the current rights of the caller. */
  prepareAgain(prepared: P): Promise<P>
  rank(prepared: P): Promise<R>
  /** Returns true if reranking services are to score the candidates. */
  isServiceNeeded(prepared: P): boolean
  /** Lets reranking services score the candidates, which can take long. */
  score(prepared: P, ranking: R): Promise<R>
  finish(prepared: P, ranking: R): Promise<T>
}

/**
 * Runs the steps of a search: ranks when it is the caller's turn, and finishes in the same turn. If services are needed, they
 * score outside of the queue, and the search finishes in the caller's next turn, with the rights that the caller then has.
 *
 * @throws the codes of {@link CallerQueue.run}, and of the steps
 */
export async function searchInTurns<P, R, T>(
  queue: CallerQueue,
  caller: QueuedCaller,
  workspaceId: string,
  steps: SearchSteps<P, R, T>,
): Promise<T> {
  let prepared = await steps.prepare()
  const turn = await queue.run(caller, workspaceId, async hasWaited => {
    if (hasWaited) prepared = await steps.prepareAgain(prepared)
    const ranking = await steps.rank(prepared)
    return steps.isServiceNeeded(prepared) ? { ranking } : { result: await steps.finish(prepared, ranking) }
  })
  if ('result' in turn) return turn.result!
  const scored = await steps.score(prepared, turn.ranking!)
  return queue.run(caller, workspaceId, async () => steps.finish(await steps.prepareAgain(prepared), scored))
}
