import * as Args from '@oclif/core/args'
import { ChatCommand, chatFlags, screenReaderFlag } from '../../src/cli/chat/chat-command.ts'

export default class AgentsChat extends ChatCommand {
  static override summary = 'chat with an agent about your documents'
  static override description =
    'In a terminal, starts a conversation; type /help to list its commands. Outside a terminal, or with --json or --no-stream, prints the answer to QUESTION, or to the question on stdin.'
  static override examples = [
    'wb agents chat maven',
    'echo "how do refunds work" | wb agents chat maven',
    'wb agents chat maven "how do refunds work" --json',
  ]
  static override args = {
    agent: Args.string({
      ignoreStdin: true,
      description: 'agent name or ID [Maven, otherwise the oldest agent]',
    }),
    question: Args.string({ ignoreStdin: true, description: 'first question' }),
  }
  static override flags = { ...chatFlags, 'screen-reader': screenReaderFlag }

  async run() {
    const { args, flags } = await this.parse(AgentsChat)
    await this.chat(
      { ...args, flags },
      flags['screen-reader'],
      () => import('../../src/tui/chat/interfaces.ts'),
    )
  }
}
