import type { Caller } from '../access/caller.ts'
import { subjectName } from '../access/subject.ts'
import type { QueueTurn } from '../base/fair-limiter.ts'
import { FairThreads } from '../base/fair-threads.ts'
import { type OperationHost, type ThreadLimits, ThreadTimeout } from '../base/threads.ts'
import { WbError } from '../contract/errors.ts'
import type { PassageOperations } from './passage-operations.ts'

/** Time limit of a call. The longest text that a request can contain takes about half a minute. */
const callMs = 300_000

/** Chunks and embeds ingested texts. A call runs alone on its thread. There is a second thread for other workspaces. */
export class IndexThreads {
  readonly #threads: FairThreads<PassageOperations>

  constructor(open: (limits: ThreadLimits) => OperationHost<PassageOperations>) {
    this.#threads = new FairThreads({ threads: 1, extraThreads: 1 }, () => open({ callMs }))
  }

  /** @throws extraction_failed  the call takes too long */
  async run<K extends keyof PassageOperations>(
    turn: QueueTurn,
    name: K,
    input: Parameters<PassageOperations[K]>[0],
  ): Promise<Awaited<ReturnType<PassageOperations[K]>>> {
    return this.#threads
      .run(turn, host => host.run(name, input))
      .catch(error => {
        throw error instanceof ThreadTimeout ? tookTooLong() : error
      })
  }

  close(): Promise<void> {
    return this.#threads.close()
  }
}

/** Returns the turn of a caller. It has no signal, because texts that have arrived are ingested even if the client disconnects. */
export function callerTurn(workspaceId: string, { auth }: Pick<Caller, 'auth'>): QueueTurn {
  return { workspaceId, member: subjectName(auth) ?? 'anonymous' }
}

/** Returns the turn of a job. The jobs of a workspace share the turns of one caller. */
export function jobTurn(workspaceId: string): QueueTurn {
  return { workspaceId, member: 'jobs' }
}

function tookTooLong(): WbError {
  const seconds = callMs / 1_000
  return new WbError('extraction_failed', `the text takes longer than ${seconds} s to split and embed`, {
    hint: 'Split the text, or use longer chunks.',
  })
}
