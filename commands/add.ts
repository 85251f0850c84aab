import { resolve } from 'node:path'
import * as Args from '@oclif/core/args'
import { IngestCommand, ingestFlags, pathArg } from '../src/cli/ingest/ingest-command.ts'
import { splitAddArguments } from '../src/cli/ingest/split-add-arguments.ts'
import { baseNameFromPath } from '../src/cli/quickstart/plan.ts'

export default class Add extends IngestCommand {
  static override summary = 'ingest files or web pages into your knowledge base'
  static override description =
    'Like wb kb ingest, but you can omit the knowledge base if there is only one. If the workspace has no knowledge base, the command creates one and names it after the first path.'
  static override examples = [
    'wb add ./docs',
    'wb add handbook ./docs',
    'date | wb add handbook - --name date.md',
  ]
  static override usage = 'add [NAME] PATH…'
  static override strict = false
  static override args = {
    path: pathArg,
    name: Args.string({
      ignoreStdin: true,
      description: 'knowledge base name or ID, before the paths [the only knowledge base, or a new one]',
    }),
  }
  static override flags = ingestFlags

  async run() {
    const { flags, argv } = await this.parse(Add)
    const { base, paths } = await splitAddArguments(argv.map(String), this.io.cwd, this.resolveContext)
    const name = base ?? baseNameFromPath(resolve(this.io.cwd, paths[0]!.replace(/\.\w+$/, '')))
    await this.ingest({ name, find: () => this.knowledgeBase(base) }, paths, flags)
  }
}
