import * as Args from '@oclif/core/args'
import { WbCommand } from '../../src/cli/command/command.ts'
import { UsageError } from '../../src/cli/errors.ts'
import { removeLocalModel } from '../../src/cli/local.ts'

export default class ModelsRemove extends WbCommand {
  static override summary = 'remove an embedding model that you added'
  static override description =
    'Searches and ingests of knowledge bases with this model then fail, until you add it again with the same name.'
  static override examples = ['wb models remove bge-small', 'wb models remove bge-small --json']
  static override args = {
    name: Args.string({ required: true, description: 'name of the model' }),
  }

  async run() {
    const { args } = await this.parse(ModelsRemove)
    this.requireTrustedFolder()
    if (!(await removeLocalModel(this.profile.dataDir, args.name)))
      throw new UsageError(`there is no model "${args.name}"`, ['wb models list'])
    this.output.reportDeleted(args.name, `removed model ${args.name}`)
  }
}
