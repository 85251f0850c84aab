import { conversationChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { yesFlag } from '../../src/cli/command/flags.ts'
import { conversationName, findConversation } from '../../src/cli/find/conversation.ts'
import { formatCounted } from '../../src/cli/terminal/output.ts'
import { countItems } from '../../src/cli/terminal/take-first.ts'
import { conversations, messages } from '../../src/contract/conversations.ts'

export default class ConversationsDelete extends WbCommand {
  static override summary = 'delete a conversation and its messages'
  static override examples = [
    'wb conversations delete "Refund window"',
    'wb conversations delete "Refund window" --yes',
  ]
  static override args = { conversation: existingArg(conversationChoices, 'title or ID') }
  static override flags = { yes: yesFlag }

  async run() {
    const { args, flags } = await this.parse(ConversationsDelete)
    const request = findConversation(this.resolveContext, args.conversation)
    const conversation = await this.waitFor('loading', request)
    const { workspaceId, agentId, conversationId } = conversation
    const params = { workspaceId, agentId, conversationId }
    const items = this.client.items(messages.list, { params })
    const contents = formatCounted(await this.waitFor('counting messages', countItems(items)), 'message')
    const name = conversationName(conversation)
    const target = `conversation ${name} with ${contents}`
    await this.confirmDeletion(target, name, flags.yes)
    await this.client.call(conversations.delete, { params })
    this.output.reportDeleted(conversationId, `deleted ${target}`)
  }
}
