import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { kb } from '../../src/contract/knowledge.ts'

const states = ['active', 'draft', 'deprecated'] as const

export default class KbUpdate extends WbCommand {
  static override summary = 'change the description, status or language of a knowledge base'
  static override examples = [
    'wb kb update handbook --description "for the whole team"',
    'wb kb update handbook --status deprecated',
  ]
  static override args = { name: Args.string({ description: 'name or id; the only one when left out' }) }
  static override flags = {
    description: Flags.string({ summary: 'what it holds' }),
    status: Flags.option({ options: states, summary: 'whether it is in use' })(),
    language: Flags.string({ summary: 'language of its documents' }),
    lexical: Flags.boolean({ allowNo: true, summary: 'search words as well as vectors' }),
  }

  async run() {
    const { args, flags } = await this.parse(KbUpdate)
    const { description, language, status, lexical: enabled } = flags
    this.requireChange([description, language, status, enabled])
    const { workspaceId, knowledgeBaseId, lexical: before } = await this.knowledgeBase(args.name)
    const lexical = enabled === undefined ? undefined : { ...before, enabled }
    const body = { description, language, status, lexical }
    const changed = await this.client.call(kb.update, { params: { workspaceId, knowledgeBaseId }, body })
    this.output.made(changed, knowledgeBaseId, `changed knowledge base ${changed.name}`)
  }
}
