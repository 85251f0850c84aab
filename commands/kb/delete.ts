import { knowledgeBaseChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { yesFlag } from '../../src/cli/command/flags.ts'
import { formatCounted } from '../../src/cli/terminal/output.ts'
import { countItems } from '../../src/cli/terminal/take-first.ts'
import { documents } from '../../src/contract/documents.ts'
import { kb } from '../../src/contract/knowledge.ts'

export default class KbDelete extends WbCommand {
  static override summary = 'delete a knowledge base and its documents'
  static override examples = ['wb kb delete handbook', 'wb kb delete handbook --yes']
  static override args = { name: existingArg(knowledgeBaseChoices, 'name or ID') }
  static override flags = { yes: yesFlag }

  async run() {
    const { args, flags } = await this.parse(KbDelete)
    const { workspaceId, knowledgeBaseId, name } = await this.knowledgeBase(args.name)
    const params = { workspaceId, knowledgeBaseId }
    const items = this.client.items(documents.list, { params })
    const contents = formatCounted(await this.waitFor('counting documents', countItems(items)), 'document')
    const target = `knowledge base ${name} with ${contents}`
    await this.confirmDeletion(target, name, flags.yes)
    await this.waitFor(`deleting ${name}`, this.client.call(kb.delete, { params }))
    this.output.reportDeleted(knowledgeBaseId, `deleted ${target}`)
  }
}
