import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { markdownOf } from '../../src/cli/chat/exported.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { findAgent } from '../../src/cli/find/agent.ts'
import { findConversation } from '../../src/cli/find/conversation.ts'
import { plain, plainJson } from '../../src/cli/terminal/terminal-text.ts'
import { attachments } from '../../src/contract/attachments.ts'
import { messages } from '../../src/contract/conversations.ts'
import { limits } from '../../src/contract/limits.ts'

export default class ConversationsExport extends WbCommand {
  static override summary = 'print a conversation as Markdown or JSON, with what it cites'
  static override examples = [
    'wb conversations export "Refund window" > refunds.md',
    'wb conversations export "Refund window" --format json',
  ]
  static override args = {
    conversation: Args.string({ description: 'title or id; the only one when left out' }),
  }
  static override flags = {
    format: Flags.option({
      options: ['markdown', 'json'] as const,
      default: 'markdown' as const,
      summary: 'what to print; json is what --json prints',
    })(),
  }

  async run() {
    const { args, flags } = await this.parse(ConversationsExport)
    const { resolving, output } = this
    const conversation = await this.waitFor('looking', findConversation(resolving, args.conversation))
    const { workspaceId, agentId, conversationId } = conversation
    const params = { workspaceId, agentId, conversationId }
    const said = this.client.items(messages.list, { params })
    const { rows } = await this.take(said, Infinity)
    const query = { limit: limits.attachmentsPerConversation }
    const { items: attached } = await this.client.call(attachments.list, { params, query })
    const whole = { ...conversation, attachments: attached, messages: rows }
    if (output.json) return output.value(whole)
    if (flags.format === 'json') return output.result(plainJson(whole, 2))
    const { name } = await this.waitFor('looking', findAgent(resolving, agentId))
    output.result(plain(markdownOf(conversation, name, rows, attached)).trimEnd())
  }
}
