import { WbCommand } from '../../src/cli/command/command.ts'
import { listLocalModels } from '../../src/cli/local.ts'
import { formatByteSize } from '../../src/cli/terminal/byte-size.ts'

export default class ModelsList extends WbCommand {
  static override summary = 'list the embedding models that you added'
  static override examples = ['wb models list', 'wb models list --json']

  async run() {
    await this.parse(ModelsList)
    this.requireTrustedFolder()
    const rows = await listLocalModels(this.profile.dataDir)
    this.output.list(rows, {
      columns: {
        name: { value: row => row.name },
        dimensions: { value: row => row.dimension, format: 'count' },
        tokens: { value: row => row.tokenizer.tokensMax, format: 'count' },
        size: { value: row => formatByteSize(row.bytes), format: 'count' },
        'SHA-256': { value: row => row.sha256.model, pipeOnly: true },
        added: { value: row => row.addedAt, format: 'time' },
      },
      empty: ['no models were added yet; add one:', '  wb models add ./folder'],
    })
  }
}
