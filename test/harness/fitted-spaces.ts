import { expect } from 'vitest'
import { LsaModel } from '../../src/models/lsa.ts'
import { placeholderEmbed } from '../../src/models/placeholder-embedder.ts'
import type { ContentStore, FittedSpaces } from '../../src/storage/content.ts'
import type { Base } from './resources.ts'
import { storeFile } from './store-file.ts'

const subjects = ['wing', 'tail', 'nozzle', 'rotor', 'panel', 'shock', 'layer', 'plate', 'cone', 'jet']
const events = ['flutters', 'heats', 'stalls', 'separates', 'vibrates', 'cools', 'bends', 'cracks']
const causes = ['pressure', 'friction', 'turbulence', 'radiation', 'resonance', 'suction', 'fatigue']

/** Returns a sentence that is unique for a number. */
export function sentence(n: number): string {
  const [subject, event] = [subjects[n % subjects.length], events[(n * 3) % events.length]]
  return `The ${subject} ${event} under ${causes[(n * 5) % causes.length]}, as run ${n} of the tunnel shows.`
}

/** Ingests sentences for a range of numbers, one document each. */
export async function ingestSentences(base: Pick<Base, 'ingest'>, from: number, to: number): Promise<void> {
  const numbers = Array.from({ length: to - from }, (_, at) => from + at)
  await Promise.all(numbers.map(n => base.ingest(sentence(n))))
}

export interface SpaceState {
  readonly generation: number
  readonly unfitted: number
  readonly records: number
}

/**
 * Returns the state of the space of a knowledge base in the store; fails if vectors belong to different spaces.
 */
export function readSpaceState(dataDir: string, { params, name }: Pick<Base, 'params' | 'name'>): SpaceState {
  const file = storeFile(dataDir)
  try {
    return file.snapshot(() => {
      const collection = file.collection(params.workspaceId, name)!
      const { id, generation, unfitted, records } = collection as unknown as SpaceState & { id: number }
      const [stored] = file.all('SELECT * FROM embedder_model WHERE collection = ?', id)
      expect(stored === undefined).toBe(generation === 0)
      const model = stored && decode(stored)
      const passages = file.all('SELECT id, title, text FROM record WHERE collection = ?', id)
      const vectors = file.vectors(params.workspaceId, name)
      expect(vectors.size).toBe(passages.length)
      expect(records).toBe(passages.length)
      for (const row of passages) {
        const passage = { title: row.title as string | null, text: String(row.text ?? '') }
        const expected = model ? model.embed(passage) : placeholderEmbed(passage)
        expect(vectors.get(String(row.id)), String(row.id)).toEqual(expected)
      }
      return { generation, unfitted, records }
    })
  } finally {
    file.close()
  }
}

function decode({ terms, weights }: Record<string, unknown>): LsaModel {
  return LsaModel.decode({ dimension: 128, terms: String(terms), weights: weights as Uint8Array })
}

/** Wraps a store to observe or delay calls of its fitted spaces. */
export function withFittedSpaces(change: (spaces: FittedSpaces) => Partial<FittedSpaces>) {
  return (store: ContentStore): ContentStore =>
    store.fitted ? { ...store, fitted: { ...store.fitted, ...change(store.fitted) } } : store
}

/** A gate that delays work while it is closed. */
export class Gate {
  #resolve = () => {}
  #opened: Promise<void> = Promise.resolve()
  reached = 0

  /** Delays work from now on. */
  close(): void {
    this.#opened = new Promise(resolve => {
      this.#resolve = resolve
    })
  }

  async pass(): Promise<void> {
    this.reached++
    await this.#opened
  }

  open(): void {
    this.#resolve()
  }
}
