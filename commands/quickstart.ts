import * as Args from '@oclif/core/args'
import { WbCommand } from '../src/cli/command/command.ts'
import { exit } from '../src/cli/command/exit.ts'
import type { ResolvedRuntime } from '../src/cli/connection/resolve-runtime.ts'
import { homeFolder } from '../src/cli/environment.ts'
import { readIngestedFolders } from '../src/cli/ingest/ingested-folders.ts'
import { ingestSummaryJson } from '../src/cli/ingest/summary.ts'
import { typedProgram } from '../src/cli/launch-command.ts'
import { printPassages } from '../src/cli/passages/print-passages.ts'
import { planQuickstart } from '../src/cli/quickstart/plan.ts'
import {
  nextStepLines,
  type QuickstartResult,
  quickstart,
  runtimeLocation,
} from '../src/cli/quickstart/quickstart.ts'
import { plainLine } from '../src/cli/terminal/terminal-text.ts'

/** Minimum terminal width for a heading on one line, in cells. */
const inlineWidthMin = 72

export default class Quickstart extends WbCommand {
  static override summary = 'ingest a folder or sample documents, and search them'
  static override description =
    'Creates the workspace demo with a knowledge base, ingests the documents, and searches them. It is safe to run again.'
  protected override readonly finishesBackgroundWork = true
  static override examples = ['wb quickstart', 'wb quickstart ./docs "how do refunds work"']
  static override args = {
    folder: Args.string({
      ignoreStdin: true,
      description: 'folder to ingest [the Workbase documentation]',
    }),
    question: Args.string({ ignoreStdin: true, description: 'question to search for' }),
  }

  async run() {
    const { args, flags } = await this.parse(Quickstart)
    const { client, signal, progress, output, profile } = this
    const plan = await planQuickstart(args.folder, args.question, { cwd: this.io.cwd, signal })
    const runtime = await this.session.runtime()
    const name = output.errorStyle.strong(`Workbase ${this.config.version}`)
    output.note(
      `  ${[name, ...runtimeLocation(runtime, profile.dataDir, homeFolder(this.io.env))].join(output.width < inlineWidthMin ? '\n  ' : ' · ')}\n`,
    )
    const options = { client, signal, progress, output, profile, runtime, wait: !flags['no-wait'] }
    const result = await quickstart(options, plan)
    if (result.summary.tally.failed > 0) this.exitCode = exit.failed
    if (output.json) output.value(quickstartJson(result))
    else this.show(result, runtime.kind)
  }

  private show(result: QuickstartResult, kind: ResolvedRuntime['kind']): void {
    const { question, passages } = result
    this.output.note(`  ${this.output.errorStyle.strong('?')} ${plainLine(question)}\n`)
    printPassages(this.output, question, passages, {
      explain: false,
      foldersOf: readIngestedFolders(this.profile),
    })
    this.output.note(
      ['  Next', ...nextStepLines(result, this.output, { program: typedProgram(this.io), kind })].join('\n'),
    )
  }
}

function quickstartJson({ workspace, base, contents, summary, question, passages }: QuickstartResult) {
  const hits = passages.map(({ document: _, ...passage }) => passage)
  return {
    workspace,
    knowledgeBase: base,
    ...contents,
    ingest: ingestSummaryJson(summary),
    question,
    passages: hits,
  }
}
