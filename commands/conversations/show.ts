import * as Args from '@oclif/core/args'
import { imageLines } from '../../src/cli/chat/images.ts'
import { unsupportedList, unsupportedSentences } from '../../src/cli/chat/unsupported.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { conversationFields } from '../../src/cli/fields/agent.ts'
import { findAgent } from '../../src/cli/find/agent.ts'
import { findConversation } from '../../src/cli/find/conversation.ts'
import { lookUpBaseNames } from '../../src/cli/find/names.ts'
import { plain } from '../../src/cli/terminal/terminal-text.ts'
import { wrapLine } from '../../src/cli/terminal/wrap.ts'
import { attachments } from '../../src/contract/attachments.ts'
import { type Message, messages } from '../../src/contract/conversations.ts'
import { limits } from '../../src/contract/limits.ts'

const indent = '    '

export default class ConversationsShow extends WbCommand {
  static override summary = 'show a conversation and its messages'
  static override examples = [
    'wb conversations show "Refund window"',
    'wb conversations show "Refund window" --json | jq .messages',
  ]
  static override args = {
    conversation: Args.string({ description: 'title or ID [the only conversation]' }),
  }
  static override flags = {
    limit: { ...limitFlag, summary: 'maximum number of messages [50 in a terminal, otherwise all]' },
  }

  async run() {
    const { args, flags } = await this.parse(ConversationsShow)
    const { resolveContext, output } = this
    const conversation = await this.waitFor('loading', findConversation(resolveContext, args.conversation))
    const { workspaceId, agentId, conversationId } = conversation
    const params = { workspaceId, agentId, conversationId }
    const items = this.client.items(messages.list, { params })
    const { rows, total } = await this.takeRows(items, flags.limit)
    const query = { limit: limits.attachmentsPerConversation }
    const attachedFiles = (
      await this.waitFor('loading', this.client.call(attachments.list, { params, query }))
    ).items
    if (output.json) return output.value({ ...conversation, attachments: attachedFiles, messages: rows })
    const { name } = await this.waitFor('loading', findAgent(resolveContext, agentId))
    const bases = await lookUpBaseNames(this.client, workspaceId, conversation.knowledgeBaseIds)
    output.fields(conversation, conversationFields(conversation, name, bases, attachedFiles))
    for (const message of rows) this.printMessage(message, name)
    if (total !== undefined) output.note(`  ${rows.length} of ${total}`)
  }

  /** Prints a message: wrapped in a terminal, on one line in a pipe. */
  private printMessage(message: Message, agent: string): void {
    const { output } = this
    if (!output.interactive) {
      output.row(message, {
        time: { value: row => row.messageTs },
        role: { value: row => row.role },
        content: { value: row => [row.content, ...imageLines(row)].filter(Boolean).join(' ') || null },
      })
      return
    }
    const author = { agent: plain(agent), user: 'user', system: 'summary of earlier messages' }[message.role]
    output.result(`\n  ${output.style.strong(author)}`)
    const lines = [...plain(message.content ?? '').split('\n'), ...imageLines(message)]
    for (const line of lines)
      for (const part of wrapLine(indent + line, output.width, indent.length)) output.result(part.trimEnd())
    const unsupported = unsupportedSentences(message)
    const { heading, items } = unsupportedList(unsupported)
    const marks = unsupported.length > 0 ? ['', heading, ...items.map(item => `- ${item}`)] : []
    for (const line of marks)
      for (const part of wrapLine(indent + line, output.width, indent.length))
        output.result(output.style.dim(part.trimEnd()))
  }
}
