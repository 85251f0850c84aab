import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { ChatCommand, chatFlags } from '../src/cli/chat/chat-command.ts'

export default class Ask extends ChatCommand {
  static override summary = 'ask a question and print the answer with its sources'
  static override examples = [
    'wb ask "how do refunds work"',
    'wb ask "how do refunds work" --agent bobby',
    'wb ask "what is wrong here?" --image screenshot.png',
    'wb ask "what happened today" --attach notes/day.md',
  ]
  static override args = {
    question: Args.string({ ignoreStdin: true, description: 'question [read from stdin]' }),
  }
  static override flags = {
    agent: Flags.string({ char: 'a', summary: 'agent name or ID [Maven, otherwise the oldest agent]' }),
    image: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      summary: 'image to send with the question; can be repeated',
      helpValue: 'FILE',
    }),
    attach: Flags.string({
      summary: 'file to attach to the conversation; can be repeated',
      helpValue: 'FILE',
      multiple: true,
      multipleNonGreedy: true,
    }),
    ...chatFlags,
  }

  async run() {
    const { args, flags } = await this.parse(Ask)
    const { agent, image: images, attach } = flags
    const request = { agent, question: args.question, images, attach, flags }
    await this.answer(request, () => import('../src/tui/chat/interfaces.ts'))
  }
}
