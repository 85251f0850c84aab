import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { shellWord } from '../../src/base/shell-word.ts'
import { filterChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { baseFlag } from '../../src/cli/find/filter.ts'
import { conditionFlags, parseCondition } from '../../src/cli/passages/parse-condition.ts'
import { filters } from '../../src/contract/filters.ts'

export default class FiltersCreate extends WbCommand {
  static override summary = 'save a search filter for a knowledge base'
  static override examples = [
    'wb filters create english --kb handbook --where lang=en',
    `wb filters create recent --kb handbook --filter '{"year":{"$gte":1960}}'`,
  ]
  static override args = { name: Args.string({ required: true, description: 'filter name' }) }
  static override flags = {
    kb: baseFlag,
    ...conditionFlags,
    description: Flags.string({ summary: 'description of the filter' }),
  }

  async run() {
    const { args, flags } = await this.parse(FiltersCreate)
    const { name } = args
    const { workspaceId, knowledgeBaseId, name: base } = await this.knowledgeBase(flags.kb)
    await this.confirmDuplicateName(filterChoices, name, { kb: knowledgeBaseId })
    const promptForFilter = async () =>
      parseCondition({
        filter: await this.flagOrPrompt('--filter or --where', undefined, 'Condition, as JSON'),
      })
    const body = {
      name,
      description: flags.description,
      filter: parseCondition(flags) ?? (await promptForFilter())!,
    }
    const created = await this.client.call(filters.create, { params: { workspaceId, knowledgeBaseId }, body })
    this.output.reportSaved(created, created.knowledgeFilterId, `saved filter ${name} of ${base}`)
    this.output.suggest(`wb kb search ${base} "…" --saved ${shellWord(name)}`)
  }
}
