import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '../base/id.ts'
import { unitVector } from '../base/unit-vector.ts'
import { meanOfRows } from '../sentence-model/encoded-text.ts'
import { loadNativeRuntime, type NativeSession, sessionOptions } from '../sentence-model/native-runtime.ts'
import { WordPieceTokenizer } from '../sentence-model/word-piece-tokenizer.ts'
import { type LocalModel, LocalModelError, modelFile, tokenizerFile } from './local-model.ts'
import { readVocabulary } from './read-model-folder.ts'

/** Inputs that models of the kind of BERT have. */
const knownInputs = ['input_ids', 'attention_mask', 'token_type_ids']

/** A model that is open on the calling thread. */
export class LocalEncoder {
  private constructor(
    private readonly model: LocalModel,
    private readonly runtime: ReturnType<typeof loadNativeRuntime>,
    private readonly session: NativeSession,
    private readonly tokenizer: WordPieceTokenizer,
  ) {}

  /**
   * Opens a model.
   *
   * @param folder   folder with the files of the model
   * @param runtime  folder of onnxruntime-node
   * @throws LocalModelError  a file has changed since it was added, or the runtime does not support the model
   */
  static async open(model: LocalModel, folder: string, runtime: string): Promise<LocalEncoder> {
    const bytes = readFileSync(join(folder, modelFile))
    const tokenizer = join(folder, tokenizerFile)
    if (sha256(bytes) !== model.sha256.model || sha256(readFileSync(tokenizer)) !== model.sha256.tokenizer)
      throw new LocalModelError('was changed after it was added', 'wb models remove NAME, then add it again')
    const loaded = loadNativeRuntime(runtime)
    const session = await loaded.InferenceSession.create(bytes, sessionOptions).catch(cause => {
      throw new LocalModelError('cannot be opened by onnxruntime-node', undefined, cause)
    })
    const unknown = session.inputNames.filter(name => !knownInputs.includes(name))
    if (unknown.length > 0 || !session.inputNames.includes('input_ids'))
      throw new LocalModelError(`has other inputs than ${knownInputs.join(', ')}: ${unknown.join(', ')}`)
    return new LocalEncoder(
      model,
      loaded,
      session,
      new WordPieceTokenizer(readVocabulary(tokenizer), model.tokenizer),
    )
  }

  /**
   * Returns the vectors of texts, of length 1. Computes one text at a time, so that other calls wait for one text at most.
   *
   * @throws LocalModelError  the output of the model does not have one row per token
   */
  async embed(texts: readonly string[]): Promise<Float32Array[]> {
    const vectors: Float32Array[] = []
    for (const text of texts) vectors.push(await this.#embedText(text))
    return vectors
  }

  async close(): Promise<void> {
    await this.session.release()
  }

  async #embedText(text: string): Promise<Float32Array> {
    const { dimension, pooling } = this.model
    const ids = this.tokenizer.encode(text)
    const tensor = (values: BigInt64Array) => new this.runtime.Tensor('int64', values, [1, ids.length])
    const inputs = {
      input_ids: tensor(BigInt64Array.from(ids, BigInt)),
      attention_mask: tensor(new BigInt64Array(ids.length).fill(1n)),
      token_type_ids: tensor(new BigInt64Array(ids.length)),
    }
    const expected = this.session.inputNames.map(name => [name, inputs[name as keyof typeof inputs]])
    const outputs = await this.session.run(Object.fromEntries(expected))
    const rows = Object.values(outputs).find(
      ({ dims }) => dims.length === 3 && dims[1] === ids.length && dims[2] === dimension,
    )
    if (!(rows?.data instanceof Float32Array))
      throw new LocalModelError(`has no output with a row of ${dimension} numbers (f32) per token`)
    return pooling === 'first'
      ? unitVector(rows.data.subarray(0, dimension))
      : meanOfRows(rows.data, dimension)
  }
}
