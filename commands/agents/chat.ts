import * as Args from '@oclif/core/args'
import { ChatCommand, chatFlags, screenReaderFlag } from '../../src/cli/chat/chat-command.ts'

export default class AgentsChat extends ChatCommand {
  static override summary = 'chat with an agent about your documents'
  static override description =
    'In a terminal it is a conversation; /help says what it can do. Elsewhere the question comes from QUESTION or from stdin, and the answer goes to stdout.'
  static override examples = [
    'wb agents chat maven',
    'echo "how do refunds work" | wb agents chat maven',
    'wb agents chat maven "how do refunds work" --json',
  ]
  static override args = {
    agent: Args.string({ ignoreStdin: true, description: 'name or ID [the only one, or Maven]' }),
    question: Args.string({ ignoreStdin: true, description: 'question to ask at the start' }),
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
