import { resolve } from 'node:path'
import { IngestCommand, ingestFlags, pathArg } from '../src/cli/ingest/ingest-command.ts'
import { into } from '../src/cli/ingest/into.ts'
import { nameAfter } from '../src/cli/quickstart/plan.ts'

export default class Add extends IngestCommand {
  static override summary = 'put files, folders or a stream into your knowledge base'
  static override description =
    'The same as wb kb ingest, where the knowledge base may be left out when there is only one. Where there is none yet, one is made that is called after what is read.'
  static override examples = [
    'wb add ./docs',
    'wb add handbook ./docs',
    'date | wb add handbook - --name date.md',
  ]
  static override usage = 'add [NAME] PATH…'
  static override strict = false
  static override args = {
    path: pathArg,
  }
  static override flags = ingestFlags

  async run() {
    const { flags, argv } = await this.parse(Add)
    const { base, paths } = await into(argv.map(String), this.io.cwd, this.resolving)
    const name = base ?? nameAfter(resolve(this.io.cwd, paths[0]!.replace(/\.\w+$/, '')))
    await this.ingest({ name, find: () => this.knowledgeBase(base) }, paths, flags)
  }
}
