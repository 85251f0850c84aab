import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { findConversation } from '../../src/cli/find/conversation.ts'
import { conversations } from '../../src/contract/conversations.ts'

export default class ConversationsRename extends WbCommand {
  static override summary = 'change the title of a conversation'
  static override examples = [
    'wb conversations rename "Refund window" --title Refunds',
    'wb conversations rename Refunds --title "Refund window"',
  ]
  static override args = {
    conversation: Args.string({ description: 'title or ID [the only conversation]' }),
  }
  static override flags = { title: Flags.string({ summary: 'new title', required: true }) }

  async run() {
    const { args, flags } = await this.parse(ConversationsRename)
    const conversation = await this.waitFor(
      'loading',
      findConversation(this.resolveContext, args.conversation),
    )
    const { workspaceId, agentId, conversationId } = conversation
    const params = { workspaceId, agentId, conversationId }
    const changed = await this.client.call(conversations.update, { params, body: { title: flags.title } })
    this.output.reportSaved(changed, conversationId, `renamed the conversation to ${changed.title}`)
  }
}
