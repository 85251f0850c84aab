import * as Args from '@oclif/core/args'
import { knowledgeBaseChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { kb } from '../../src/contract/knowledge.ts'

export default class KbRename extends WbCommand {
  static override summary = 'change the name of a knowledge base'
  static override description =
    'The documents and the ID stay the same, so agents and saved filters that use the knowledge base keep working. You can use the old name for a new knowledge base.'
  static override examples = ['wb kb rename handbook manual', 'wb kb rename papers library --json']
  static override args = {
    name: existingArg(knowledgeBaseChoices, 'name or ID'),
    to: Args.string({ required: true, description: 'new name' }),
  }

  async run() {
    const { args } = await this.parse(KbRename)
    const { workspaceId, knowledgeBaseId, name } = await this.knowledgeBase(args.name)
    const params = { workspaceId, knowledgeBaseId }
    const changed = await this.client.call(kb.rename, { params, body: { name: args.to } })
    this.output.reportSaved(changed, knowledgeBaseId, `renamed knowledge base ${name} to ${changed.name}`)
  }
}
