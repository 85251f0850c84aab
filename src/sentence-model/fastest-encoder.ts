import { dotProduct } from '../base/dot-product.ts'
import type { EncodedText } from './encoded-text.ts'
import { NativeEncoder } from './native-encoder.ts'
import { loadNativeRuntime } from './native-runtime.ts'
import { SentenceEncoder } from './sentence-encoder.ts'

/**
 * Number of characters that are encoded before ONNX Runtime is loaded. A command with one question ends sooner without it:
 * loading it takes as long as encoding some questions.
 */
const CHARACTERS_BEFORE_NATIVE = 1_000

/** Text of the check that ONNX Runtime computes the same model. */
const checkText = 'How do I revoke an API key that I have lost? Delete it, and create another one.'
/** Lowest accepted cosine of the vectors of `checkText`. It was 0.99 or more for all measured texts. */
const COSINE_MIN = 0.98

/** The engine that computes vectors, and why ONNX Runtime is not used although it is installed; null otherwise. */
export interface SentenceEngine {
  readonly name: 'native' | 'wasm'
  readonly failure: string | null
}

export interface FastestEncoderOptions {
  /** Path of the model; by default that of this package. */
  readonly model?: string | undefined
  /** Folder of onnxruntime-node; undefined if it is not installed. */
  readonly runtime?: string | undefined
}

/**
 * The sentence model all-MiniLM-L6-v2 on the calling thread. The first texts are encoded in WebAssembly, which starts sooner;
 * all others by ONNX Runtime if it is installed and returns the same vectors. Calls must not overlap.
 */
export class FastestEncoder {
  readonly #options: FastestEncoderOptions
  #wasm: SentenceEncoder | undefined
  #native: NativeEncoder | undefined
  #failure: string | null = null
  #characters = 0

  /** @throws Error  the model or the kernels are missing or damaged */
  constructor(options: FastestEncoderOptions) {
    this.#options = options
    this.#wasm = new SentenceEncoder(options.model)
  }

  get engine(): SentenceEngine {
    return { name: this.#native ? 'native' : 'wasm', failure: this.#failure }
  }

  /** Returns the vector of each text, of 384 dimensions and length 1. Text beyond 256 tokens is ignored. */
  async embed(texts: readonly string[]): Promise<Float32Array[]> {
    return (await this.#encoderFor(texts)).embed(texts)
  }

  /** Like {@link embed}, but also returns the vectors of the tokens. */
  async encode(texts: readonly string[]): Promise<EncodedText[]> {
    return (await this.#encoderFor(texts)).encode(texts)
  }

  async close(): Promise<void> {
    await this.#native?.close()
  }

  async #encoderFor(texts: readonly string[]): Promise<NativeEncoder | SentenceEncoder> {
    if (this.#native) return this.#native
    const { runtime } = this.#options
    if (runtime && this.#failure === null && this.#characters >= CHARACTERS_BEFORE_NATIVE)
      await this.#openNative(runtime)
    for (const { length } of texts) this.#characters += length
    return this.#native ?? this.#wasm!
  }

  /** Replaces the encoder in WebAssembly, whose memory is then free. */
  async #openNative(runtime: string): Promise<void> {
    let native: NativeEncoder | undefined
    try {
      native = await NativeEncoder.open(loadNativeRuntime(runtime), this.#options.model)
      const cosine = dotProduct((await native.embed([checkText]))[0]!, this.#wasm!.embed([checkText])[0]!)
      if (!(cosine >= COSINE_MIN))
        throw new Error(`its vector of a test sentence differs: cosine ${cosine.toFixed(3)}`)
      this.#native = native
      this.#wasm = undefined
    } catch (error) {
      await native?.close()
      this.#failure = error instanceof Error ? error.message : String(error)
    }
  }
}
