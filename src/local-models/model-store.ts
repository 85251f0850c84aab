import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { type Clock, timestamp } from '../base/clock.ts'
import { randomHex, sha256 } from '../base/id.ts'
import { parseJson } from '../base/parse-json.ts'
import { findNativeRuntime } from '../sentence-model/native-runtime.ts'
import { LocalEncoder } from './local-encoder.ts'
import {
  descriptionFile,
  isModelName,
  type LocalModel,
  LocalModelError,
  modelFile,
  tokenizerFile,
} from './local-model.ts'
import { readModelFolder } from './read-model-folder.ts'

/** Text that a model embeds before it is added. */
const testText = 'A sentence to test the model.'

/** How to install the runtime of added models. */
export const installRuntimeHint =
  'Install onnxruntime-node where Workbase is installed: npm install onnxruntime-node, or with -g if Workbase is installed globally.'

/**
 * The embedding models that were added to a data directory, each in a folder of `models`. They are added and removed only on
 * this machine, by commands. Records of the runtime refer to them by name.
 */
export class ModelStore {
  readonly #folder: string

  constructor(dataDir: string) {
    this.#folder = join(dataDir, 'models')
  }

  /** Returns the folder of a model with a valid name, which may be missing. */
  folderOf(name: string): string {
    return join(this.#folder, name)
  }

  /**
   * Returns undefined if there is no model with this name, and for a name that is not valid.
   *
   * @throws LocalModelError  the description of the model is damaged
   */
  find(name: string): LocalModel | undefined {
    if (!isModelName(name)) return undefined
    const path = join(this.folderOf(name), descriptionFile)
    if (!existsSync(path)) return undefined
    const model = parseJson(readFileSync(path, 'utf8')) as LocalModel | undefined
    if (model?.name === name && model.sha256 && model.tokenizer) return model
    throw new LocalModelError('has a damaged description', `wb models remove ${name}`)
  }

  /** Returns all models by name. Omits damaged ones. */
  list(): LocalModel[] {
    if (!existsSync(this.#folder)) return []
    return readdirSync(this.#folder)
      .sort()
      .flatMap(name => {
        try {
          return this.find(name) ?? []
        } catch {
          return []
        }
      })
  }

  /**
   * Copies a model from a folder, after it has embedded a text.
   *
   * @param runtime  folder of onnxruntime-node; by default the one that is installed for this package
   * @throws LocalModelError  the name is taken or not valid, the folder has no supported model, or onnxruntime-node is
   *   missing
   */
  async add(
    source: string,
    name: string,
    { clock, runtime = findNativeRuntime() }: { clock: Clock; runtime?: string | undefined },
  ): Promise<LocalModel> {
    if (!isModelName(name))
      throw new LocalModelError(
        `cannot have the name "${name}"`,
        'Use at most 64 letters, digits, dots, hyphens and underscores: --name NAME',
      )
    if (existsSync(this.folderOf(name)))
      throw new LocalModelError(
        `cannot be added as ${name}, because there is a model with this name`,
        `wb models remove ${name}`,
      )
    const { model: modelPath, tokenizer: tokenizerPath, settings, ...rest } = readModelFolder(source)
    if (!runtime)
      throw new LocalModelError('needs onnxruntime-node, which is not installed', installRuntimeHint)
    // Not a valid name, so that a model that is being copied is never listed.
    const draft = join(this.#folder, `.${name}-${randomHex(4)}`)
    mkdirSync(draft, { recursive: true, mode: 0o700 })
    try {
      copyFileSync(modelPath, join(draft, modelFile))
      copyFileSync(tokenizerPath, join(draft, tokenizerFile))
      const hashOf = (file: string) => sha256(readFileSync(join(draft, file)))
      const model: LocalModel = {
        name,
        ...rest,
        tokenizer: settings,
        sha256: { model: hashOf(modelFile), tokenizer: hashOf(tokenizerFile) },
        bytes: statSync(join(draft, modelFile)).size,
        addedAt: timestamp(clock),
      }
      await testModel(model, draft, runtime)
      writeFileSync(join(draft, descriptionFile), `${JSON.stringify(model, undefined, 2)}\n`)
      renameSync(draft, this.folderOf(name))
      return model
    } catch (error) {
      rmSync(draft, { recursive: true, force: true })
      throw error
    }
  }

  /** Deletes a model. Returns false if it does not exist. */
  remove(name: string): boolean {
    if (!isModelName(name) || !existsSync(this.folderOf(name))) return false
    rmSync(this.folderOf(name), { recursive: true })
    return true
  }
}

/** @throws LocalModelError  the model does not return a vector */
async function testModel(model: LocalModel, folder: string, runtime: string): Promise<void> {
  const encoder = await LocalEncoder.open(model, folder, runtime)
  try {
    const [vector] = await encoder.embed([testText])
    if (!vector!.every(Number.isFinite) || vector!.every(number => number === 0))
      throw new LocalModelError('returns a vector that is zero or not finite')
  } finally {
    await encoder.close()
  }
}
