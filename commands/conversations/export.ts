import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { conversationMarkdown } from '../../src/cli/chat/conversation-markdown.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { findAgent } from '../../src/cli/find/agent.ts'
import { findConversation } from '../../src/cli/find/conversation.ts'
import { plain, plainJson } from '../../src/cli/terminal/terminal-text.ts'
import { attachments } from '../../src/contract/attachments.ts'
import { messages } from '../../src/contract/conversations.ts'
import { limits } from '../../src/contract/limits.ts'

export default class ConversationsExport extends WbCommand {
  static override summary = 'print a conversation as Markdown or JSON'
  static override examples = [
    'wb conversations export "Refund window" > refunds.md',
    'wb conversations export "Refund window" --format json',
  ]
  static override args = {
    conversation: Args.string({ description: 'title or ID [the only conversation]' }),
  }
  static override flags = {
    format: Flags.option({
      options: ['markdown', 'json'] as const,
      default: 'markdown' as const,
      summary: 'output format; json is the same as --json',
    })(),
  }

  async run() {
    const { args, flags } = await this.parse(ConversationsExport)
    const { resolveContext, output } = this
    const conversation = await this.waitFor('loading', findConversation(resolveContext, args.conversation))
    const { workspaceId, agentId, conversationId } = conversation
    const params = { workspaceId, agentId, conversationId }
    const items = this.client.items(messages.list, { params })
    const { rows } = await this.takeRows(items, Infinity)
    const query = { limit: limits.attachmentsPerConversation }
    const { items: attachedFiles } = await this.client.call(attachments.list, { params, query })
    const fullConversation = { ...conversation, attachments: attachedFiles, messages: rows }
    if (output.json) return output.value(fullConversation)
    if (flags.format === 'json') return output.result(plainJson(fullConversation, 2))
    const { name } = await this.waitFor('loading', findAgent(resolveContext, agentId))
    output.result(plain(conversationMarkdown(conversation, name, rows, attachedFiles)).trimEnd())
  }
}
