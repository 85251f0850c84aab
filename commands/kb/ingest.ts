import { knowledgeBaseChoices } from '../../src/cli/command/choices.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { IngestCommand, ingestFlags, pathArg } from '../../src/cli/ingest/ingest-command.ts'

export default class KbIngest extends IngestCommand {
  static override summary = 'ingest files, folders or web pages into a knowledge base'
  static override description =
    'Skips unchanged files, and replaces earlier versions of changed files. If the command is interrupted, run it again to continue.'
  static override examples = [
    'wb kb ingest handbook ./docs --create',
    'wb kb ingest papers corpus.jsonl "notes/**/*.md"',
    'wb kb ingest handbook ./docs --async',
    'wb kb ingest handbook https://example.com/docs/ --depth 1',
    'wb kb ingest handbook https://github.com/owner/project.git',
    'curl -s https://example.com/a.md | wb kb ingest handbook - --name a.md',
  ]
  static override usage = 'kb ingest NAME PATH…'
  static override strict = false
  static override args = {
    name: {
      ...existingArg(knowledgeBaseChoices, 'knowledge base name or ID', { mayBeNew: true }),
      ignoreStdin: true,
    },
    path: pathArg,
  }
  static override flags = ingestFlags

  async run() {
    const { args, flags, argv } = await this.parse(KbIngest)
    const destination = { name: args.name, find: (name: string) => this.knowledgeBase(name) }
    await this.ingest(destination, argv.map(String).slice(1), flags)
  }
}
