import { resolve } from 'node:path'
import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { UsageError } from '../../src/cli/errors.ts'
import { addLocalModel } from '../../src/cli/local.ts'

export default class ModelsAdd extends WbCommand {
  static override summary = 'add an embedding model from an ONNX folder'
  static override description =
    'The folder contains model.onnx or onnx/model.onnx, tokenizer.json with a WordPiece tokenizer, and config.json, as published on Hugging Face for BERT, MiniLM, E5 or BGE. The model is tested and copied to the data directory of this machine. It needs onnxruntime-node, which you install where Workbase is installed.'
  static override examples = [
    'wb models add ./bge-small-en-v1.5',
    'wb models add ./bge-small-en-v1.5 --name bge-small',
  ]
  static override args = {
    folder: Args.string({ required: true, description: 'folder with the model' }),
  }
  static override flags = {
    name: Flags.string({ summary: 'name of the model [the name of the folder]' }),
  }

  async run() {
    const { args, flags } = await this.parse(ModelsAdd)
    this.requireTrustedFolder()
    const { clock, cwd } = this.io
    const source = resolve(cwd, args.folder)
    const added = await this.waitFor(
      'testing and copying the model',
      addLocalModel(this.profile.dataDir, source, { name: flags.name, clock }),
    )
    if ('failure' in added)
      throw new UsageError(
        `${source} ${added.failure.message}`,
        added.failure.hint ? [added.failure.hint] : [],
      )
    const { name, dimension } = added.model
    this.output.reportSaved(added.model, name, `added model ${name}, with ${dimension} dimensions`)
    this.output.suggest(
      `wb services create ${name} --type embedding --provider onnx --model ${name} --dimension ${dimension}`,
    )
  }
}
