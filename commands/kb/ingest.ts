import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { aKnowledgeBase } from '../../src/cli/choices.ts'
import { WbCommand } from '../../src/cli/command.ts'
import { existing } from '../../src/cli/existing.ts'
import { exit } from '../../src/cli/exit.ts'
import { findOrCreate } from '../../src/cli/ingest/base.ts'
import { ingest } from '../../src/cli/ingest/ingest.ts'
import { stdinNamed } from '../../src/cli/ingest/sources.ts'
import { showSummary } from '../../src/cli/ingest/summary.ts'

export default class KbIngest extends WbCommand {
  static override summary = 'put files, folders or a stream into a knowledge base'
  static override description =
    'What has not changed since the last time is left as it is, what has changed is replaced. Interrupted, it can be typed again.'
  static override examples = [
    'wb kb ingest handbook ./docs --create',
    'wb kb ingest papers corpus.jsonl "notes/**/*.md"',
    'wb kb ingest handbook ./docs --async',
    'curl -s https://example.com/a.md | wb kb ingest handbook - --name a.md',
  ]
  static override usage = 'kb ingest NAME PATH…'
  static override strict = false
  static override args = {
    name: {
      ...existing(aKnowledgeBase, 'knowledge base, by name or id', { mayBeNew: true }),
      ignoreStdin: true,
    },
    path: Args.string({
      required: true,
      ignoreStdin: true,
      description: 'files, folders, globs, .jsonl in BEIR form, or - for stdin',
    }),
  }
  static override flags = {
    create: Flags.boolean({ summary: 'make the knowledge base when it is missing' }),
    async: Flags.boolean({ summary: 'leave the work to jobs of the runtime' }),
    all: Flags.boolean({ summary: 'also what is hidden or in .gitignore' }),
    name: Flags.string({ summary: 'file name of what comes from stdin', helpValue: 'FILE' }),
  }

  async run() {
    const { args, flags, argv } = await this.parse(KbIngest)
    const paths = (argv as string[]).slice(1)
    const stdin = paths.includes('-') ? stdinNamed(flags.name) : undefined
    const { client, signal, progress, output } = this
    const { base, created } = await findOrCreate({
      client,
      signal,
      name: args.name,
      find: name => this.knowledgeBase(name),
      workspace: () => this.workspaceOrDefault(),
      agree: async question => flags.create || this.agree(question),
    })
    if (created) output.note(`  made knowledge base ${base.name}`)
    const jobs = flags.async ? (output.interactive ? 'watched' : 'left') : undefined
    const { summary, broken } = await ingest(
      { client, signal, progress, base, jobs },
      { paths, stdin, all: flags.all },
    )
    showSummary(output, summary)
    if (broken) throw broken.error
    if (summary.tally.failed > 0) process.exitCode = exit.failed
  }
}
