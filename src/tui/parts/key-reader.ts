import type { Clock } from '../../base/clock.ts'
import { type Decoder, decode, emptyDecoder, flush, type Key } from './keys.ts'

/** A terminal sends the rest of a key sooner than that. */
const escapeMs = 30

/** Makes keys of what a terminal sends. A key may come in pieces; Escape alone is one too. */
export class KeyReader {
  #decoder: Decoder = emptyDecoder
  #callOffFlush = () => {}

  constructor(
    private readonly clock: Clock,
    private readonly onKey: (key: Key) => void,
  ) {}

  read(data: string): void {
    this.#callOffFlush()
    this.#tell(decode(this.#decoder, data))
    if (this.#decoder.pending === '') return
    this.#callOffFlush = this.clock.after(escapeMs, () => this.#tell(flush(this.#decoder)))
  }

  /** What has come in pieces so far is no key any more. */
  close(): void {
    this.#callOffFlush()
  }

  #tell([decoder, keys]: readonly [Decoder, readonly Key[]]): void {
    this.#decoder = decoder
    for (const key of keys) this.onKey(key)
  }
}
