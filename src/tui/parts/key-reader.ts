import type { Clock } from '../../base/clock.ts'
import { type Decoder, decode, emptyDecoder, flush, type Key } from './keys.ts'

/** Maximum time to wait for the rest of a key sequence. */
const ESCAPE_TIMEOUT_MS = 30

/** Decodes terminal input. A key sequence can arrive in pieces, and a single `ESC` is the key Escape. */
export class KeyReader {
  #decoder: Decoder = emptyDecoder
  #cancelFlush = () => {}

  constructor(
    private readonly clock: Clock,
    private readonly onKey: (key: Key) => void,
  ) {}

  read(data: string): void {
    this.#cancelFlush()
    this.#report(decode(this.#decoder, data))
    if (this.#decoder.pending === '') return
    this.#cancelFlush = this.clock.after(ESCAPE_TIMEOUT_MS, () => this.#report(flush(this.#decoder)))
  }

  /** Drops an incomplete key. */
  close(): void {
    this.#cancelFlush()
  }

  #report([decoder, keys]: readonly [Decoder, readonly Key[]]): void {
    this.#decoder = decoder
    for (const key of keys) this.onKey(key)
  }
}
