import type { Clock } from '../../base/clock.ts'
import { type Decoder, decode, emptyDecoder, flush, type Key } from './keys.ts'

/** Milliseconds after which the rest of a key sequence is not expected any more. */
const ESCAPE_TIMEOUT_MS = 30

/** Decodes terminal input. A key can arrive in pieces; a single Escape is a key, too. */
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
