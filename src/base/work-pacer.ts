/** Time in milliseconds after which work is due to let other work run. */
const turnMs = 5

/** Resume functions of the work that has yielded, in order. */
const waiting: (() => void)[] = []

/** Resumes one piece of work in each turn of the event loop, however many wait. */
function resumeNext(): void {
  waiting.shift()!()
  if (waiting.length > 0) setImmediate(resumeNext)
}

function nextTurn(): Promise<void> {
  return new Promise(resolve => {
    if (waiting.push(resolve) === 1) setImmediate(resumeNext)
  })
}

/**
 * Divides long work of a request into turns of a few milliseconds, so that other requests can run in between. All
 * pacers take turns, so together they delay other requests no longer than one does.
 */
export class WorkPacer {
  /** A new pacer waits for its turn at the first call, because many requests can start at once. */
  #startedAt = Number.NEGATIVE_INFINITY

  /** @param signal  ends the work */
  constructor(private readonly signal?: AbortSignal) {}

  /** True if the work has run long enough, so that `yield` should be called. Takes less than 0.1 µs. */
  get isDue(): boolean {
    return performance.now() - this.#startedAt >= turnMs
  }

  /** Lets other work run. @throws the abort reason of the signal */
  async yield(): Promise<void> {
    await nextTurn()
    this.signal?.throwIfAborted()
    this.#startedAt = performance.now()
  }

  /** Lets other work run if it is due. @throws the abort reason of the signal */
  async yieldIfDue(): Promise<void> {
    if (this.isDue) await this.yield()
  }
}
