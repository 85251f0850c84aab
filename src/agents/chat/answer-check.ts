import type { Clock } from '../../base/clock.ts'
import { TimedOut, withTimeout } from '../../base/deadline.ts'
import { FairLimiter } from '../../base/fair-limiter.ts'
import type { Log } from '../../base/log.ts'
import { WorkPacer } from '../../base/work-pacer.ts'
import type { SentenceRange } from '../../contract/chat.ts'
import type { SentenceModel } from '../../sentence-model/sentence-model.ts'
import { claimsIn } from './claims.ts'
import { type EmbedTexts, type Evidence, isEnglish, SUPPORT_MIN, supportOf } from './support.ts'

/** Time limit of a check in milliseconds, with the time for which it waits for others. The last event of a turn waits for the check. */
const CHECK_MS = 2_000

/** Maximum number of characters and texts to embed at once, so that searches do not wait for the whole check. */
const BATCH_MAX = { chars: 1_000, texts: 40 }

/** Maximum number of characters of an answer and its evidence. More could not be compared within the time limit. */
const CHECKED_CHARS_MAX = 50_000

export interface AnswerCheckDependencies {
  readonly model: Pick<SentenceModel, 'embed'>
  readonly clock: Clock
  readonly log: Log
}

/**
 * Finds the sentences of an answer that no passage supports, with the built-in sentence model.
 *
 * @see docs/decisions/0052-faithfulness.md
 */
export class AnswerCheck {
  /** Runs one check at a time, because the sentence model also embeds the questions of searches. */
  readonly #limiter = new FairLimiter(1)

  constructor(private readonly deps: AnswerCheckDependencies) {}

  /**
   * Returns the unsupported sentences of an answer, in order. Checks of several workspaces take turns. Never fails: returns
   * undefined if the answer or the passages are not in English or too long, if there are no passages, if the model fails,
   * after two seconds, or if the signal fires.
   */
  async unsupportedSentences(
    answer: string,
    evidence: Evidence,
    { workspaceId, signal }: { readonly workspaceId: string; readonly signal: AbortSignal },
  ): Promise<readonly SentenceRange[] | undefined> {
    const passagesText = evidence.passages.join('\n')
    const chars = passagesText.length + evidence.context.length + answer.length
    if (passagesText === '' || chars > CHECKED_CHARS_MAX) return undefined
    if (!isEnglish(answer) || !isEnglish(passagesText)) return undefined
    const { clock, log } = this.deps
    const check = (workSignal: AbortSignal) =>
      this.#limiter.run({ workspaceId, member: '', signal: workSignal }, async () => {
        // Checks that waited would otherwise run without other work in between if words decide them.
        await new WorkPacer(workSignal).yield()
        return this.#compare(answer, evidence, workSignal)
      })
    try {
      return await withTimeout(clock, CHECK_MS, check, signal)
    } catch (error) {
      const isExpected = signal.aborted || error instanceof TimedOut
      if (!isExpected) log.error({ error }, 'an answer was not compared with its passages')
      return undefined
    }
  }

  async #compare(
    answer: string,
    evidence: Evidence,
    signal: AbortSignal,
  ): Promise<readonly SentenceRange[] | undefined> {
    const claims = claimsIn(answer)
    const texts = claims.map(({ text }) => text)
    const supports = await supportOf(texts, evidence, this.#embedderWith(signal))
    const unsupported = supports && claims.filter((_, at) => supports[at]! < SUPPORT_MIN)
    return unsupported?.map(({ start, end }) => ({ start, end }))
  }

  #embedderWith(signal: AbortSignal): EmbedTexts {
    return async texts => {
      const vectors: Float32Array[] = []
      for (const batch of batchesOf(texts))
        vectors.push(...(await this.deps.model.embed(batch, { priority: 'query', signal })))
      return vectors
    }
  }
}

function batchesOf(texts: readonly string[]): string[][] {
  const batches: string[][] = [[]]
  let chars = 0
  for (const text of texts) {
    chars += text.length
    const { length } = batches.at(-1)!
    if (length === BATCH_MAX.texts || (chars > BATCH_MAX.chars && length > 0)) {
      batches.push([])
      chars = text.length
    }
    batches.at(-1)!.push(text)
  }
  return batches
}
