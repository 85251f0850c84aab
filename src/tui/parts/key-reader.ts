import type { Clock } from '../../base/clock.ts'
import { type Decoder, decode, emptyDecoder, flush, type Key } from './keys.ts'

/** Maximum time to wait for the rest of a key sequence. */
const ESCAPE_TIMEOUT_MS = 30

/** Decodes terminal input. Joins key sequences that arrive in pieces. A single `ESC` is the Escape key. */
export class KeyReader {
  #decoder: Decoder = emptyDecoder
  #cancelFlush = () => {}

  constructor(
    private readonly clock: Clock,
    private readonly onKey: (key: Key) => void,
  ) {}

  read(data: string): void {
    this.#cancelFlush()
    this.#reportKeys(decode(this.#decoder, data))
    if (this.#decoder.pending === '') return
    this.#cancelFlush = this.clock.after(ESCAPE_TIMEOUT_MS, () => this.#reportKeys(flush(this.#decoder)))
  }

  /** Discards an incomplete key sequence. */
  close(): void {
    this.#cancelFlush()
  }

  #reportKeys([decoder, keys]: readonly [Decoder, readonly Key[]]): void {
    this.#decoder = decoder
    for (const key of keys) this.onKey(key)
  }
}
