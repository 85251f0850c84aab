import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { shellWord } from '../../src/base/shell-word.ts'
import { aService } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { ServiceCalls } from '../../src/cli/services/calls.ts'
import { compose, typeOf } from '../../src/cli/services/compose.ts'
import { fieldFlags, fieldsOf, typeFlag } from '../../src/cli/services/flags.ts'
import { kinds } from '../../src/cli/services/kinds.ts'
import { offerRelease } from '../../src/cli/services/offer.ts'
import { warnOfProblem } from '../../src/cli/services/problem.ts'
import { useOf } from '../../src/cli/services/release.ts'
import { agents } from '../../src/contract/agents.ts'

export default class ServicesCreate extends WbCommand {
  static override summary = 'create a service, by its own fields or from a preset'
  static override examples = [
    'wb services create --preset recursive-char-500',
    'wb services create near --preset ollama-nomic-embed-text',
    'wb services create gateway --type llm --provider openai --model gpt-4o --credential env:TEAM_KEY',
  ]
  static override args = {
    name: Args.string({ description: "what it is called; the preset's or the model's own" }),
  }
  static override flags = {
    type: typeFlag,
    preset: Flags.string({ summary: 'a service that is known by name, to begin with', helpValue: 'NAME' }),
    ...fieldFlags,
  }

  async run() {
    const { args, flags } = await this.parse(ServicesCreate)
    const asker = {
      client: this.client,
      canAsk: this.canAsk,
      want: this.want.bind(this),
      wantOneOf: this.wantOneOf.bind(this),
    }
    const type = await typeOf(asker, flags.type, flags.preset)
    const body = await compose(asker, type, flags.preset, fieldsOf(flags, type))
    const name = args.name ?? String(body.name ?? body.modelName ?? body.engine)
    const { workspaceId } = await this.workspaceOrDefault()
    const services = new ServiceCalls(this.client, workspaceId)
    await this.allowTwin(aService, name, { type })
    const made = await this.waitFor('creating', services.create(type, { ...body, name }))
    this.output.made(made.record, made.id, `${kinds[type].one} ${name}`)
    const use = useOf(made)
    const agree = this.agree.bind(this)
    const note = (line: string) => this.output.note(line)
    if (type === 'llm')
      note(
        `  ${await this.#bindingLine(workspaceId, name)}${this.output.again}    has an agent answer with it`,
      )
    if (use) await offerRelease({ client: this.client, agree, note }, use, workspaceId)
    await warnOfProblem(services, made, this.output)
  }

  /** The line that has an agent answer with a new service. The service is made, whatever comes of asking for agents. */
  async #bindingLine(workspaceId: string, name: string): Promise<string> {
    const listed = this.client.call(agents.list, { params: { workspaceId }, query: { limit: 2 } })
    const { items } = await listed.catch(() => ({ items: [] }))
    const agent = items.length === 1 ? shellWord(items[0]!.name) : 'NAME'
    return `wb agents update ${agent} --llm ${shellWord(name)}`
  }
}
