import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { explainBuiltInModels } from '../../src/cli/services/built-in-models.ts'
import { llmModels } from '../../src/contract/models.ts'
import { chatProviders } from '../../src/contract/providers.ts'

export default class ServicesModels extends WbCommand {
  static override summary = 'list the models available to LLM services'
  static override examples = [
    'wb services models --provider openai',
    'wb services models --provider openai --json | jq length',
  ]
  static override flags = {
    provider: Flags.option({
      options: chatProviders,
      summary: 'provider [the configured provider]',
    })(),
    endpoint: Flags.string({ summary: 'base URL of the Ollama server', helpValue: 'URL' }),
    limit: limitFlag,
  }

  async run() {
    const { flags } = await this.parse(ServicesModels)
    const query = { provider: flags.provider, baseUrl: flags.endpoint }
    const modelsRequest = this.client.call(llmModels.list, { query })
    const { provider, source, models } = await this.waitFor('querying the provider', modelsRequest)
    const { rows, total } = await this.takeRows(models, flags.limit)
    this.output.list(rows, {
      columns: {
        model: { value: row => row.id },
        name: { value: row => row.name, format: 'flexible' },
        tools: { value: row => row.supportsTools },
        recommended: { value: row => row.recommended },
      },
      empty: [`${provider} lists no models`],
      total,
    })
    if (source === 'fallback')
      for (const line of explainBuiltInModels(provider)) this.output.note(`  ${line}`)
  }
}
