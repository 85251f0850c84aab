import * as Args from '@oclif/core/args'
import { ChatCommand, chatFlags, screenReaderFlag } from '../src/cli/chat/chat-command.ts'

export default class Chat extends ChatCommand {
  static override summary = 'chat with an agent'
  static override examples = [
    'wb chat',
    'wb chat bobby',
    'wb chat --continue',
    'echo "how do refunds work" | wb chat',
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
    const { args, flags } = await this.parse(Chat)
    await this.chat({ ...args, flags }, flags['screen-reader'], () => import('../src/tui/chat/interfaces.ts'))
  }
}
