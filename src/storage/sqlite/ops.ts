import type { ThreadOperations } from '../../base/threads.ts'
import type {
  CollectionKey,
  ContentWrite,
  Fit,
  Fitted,
  Occurrences,
  Owner,
  RecordView,
  Scored,
} from '../content.ts'
import type { Outcome, Write } from '../rows.ts'
import type { Visibility } from '../visibility.ts'
import { Changes } from './changes.ts'
import { CommitQueue } from './commit.ts'
import type { Connection } from './connection.ts'
import { guarded } from './faults.ts'
import { FittedReads, FittedWrites } from './fitted.ts'
import { Lexical, type LexicalQuery, type OccurrencesQuery } from './lexical.ts'
import { Reaches } from './reach.ts'
import { type DocumentQuery, Records } from './records.ts'
import { Rows } from './rows.ts'
import { type NearestQuery, Vectors } from './vectors.ts'

interface In {
  readonly key: CollectionKey
}

/** Creates all write operations. Each call is a unit of the group commit. */
export function writeOps(connection: Connection) {
  const queue = new CommitQueue(connection)
  const rows = new Rows(connection)
  const changes = new Changes(connection)
  const fitted = new FittedWrites(connection)
  const always = () => true
  return guarded({
    write: (input: { changes: readonly ContentWrite[]; rows: readonly Write[] }): Promise<Outcome> =>
      queue.run<Outcome>({
        run(later) {
          const outcome = rows.apply(input.rows)
          if (!outcome.ok) return outcome
          const changed = changes.apply(input.changes, later)
          return changed.ok ? changed : { ...changed, at: changed.at + input.rows.length }
        },
        keeps: outcome => outcome.ok,
      }),
    lease: (input: In & { owner: string; now: number; until: number }): Promise<boolean> =>
      queue.run({ run: () => fitted.lease(input.key, input.owner, input), keeps: always }),
    release: (input: In & { owner: string }): Promise<void> =>
      queue.run({ run: () => fitted.release(input.key, input.owner), keeps: always }),
    stage: (
      input: In & { fit: Fit; vectors: readonly { record: number; vector: Float32Array }[] },
    ): Promise<boolean> =>
      queue.run({ run: () => fitted.stage(input.key, input.fit, input.vectors), keeps: always }),
    swap: (input: In & { fit: Fit; fitted: Fitted }): Promise<boolean> =>
      queue.run({ run: () => fitted.swap(input.key, input.fit, input.fitted), keeps: always }),
  } satisfies ThreadOperations)
}

/** Creates the reads of content that can take long. */
export function readOps(connection: Connection) {
  const reaches = new Reaches(connection)
  const vectors = new Vectors(connection, reaches)
  const lexical = new Lexical(connection, reaches)
  const records = new Records(connection)
  const fitted = new FittedReads(connection)
  return guarded({
    nearest: (input: In & { query: NearestQuery }): Scored[] => vectors.nearest(input.key, input.query),
    lexical: (input: In & { query: LexicalQuery }): Scored[] => lexical.search(input.key, input.query),
    occurrences: (input: In & { query: OccurrencesQuery }): Occurrences =>
      lexical.occurrences(input.key, input.query),
    read: (
      input: In & { records: readonly number[]; options: { vectors: boolean; visibility: Visibility } },
    ): RecordView[] => records.read(input.key, input.records, input.options),
    owners: (input: In & { ids: readonly string[] }): Owner[] => records.owners(input.key, input.ids),
    ofDocument: (input: In & { query: DocumentQuery }): RecordView[] =>
      records.ofDocument(input.key, input.query),
    model: (input: In) => fitted.model(input.key),
    passages: (input: In & { after: number; limit: number }) =>
      fitted.passages(input.key, input.after, input.limit),
    unstaged: (input: In & { generation: number; limit: number }) =>
      fitted.unstaged(input.key, input.generation, input.limit),
  } satisfies ThreadOperations)
}

export type WriteOps = ReturnType<typeof writeOps>
export type ReadOps = ReturnType<typeof readOps>
