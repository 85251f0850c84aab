import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { readAttachment } from '../../src/cli/chat/read-attachment.ts'
import { findChunkers, previewChunks } from '../../src/cli/chunk-preview/preview-chunks.ts'
import { printChunks } from '../../src/cli/chunk-preview/print-chunks.ts'
import { WbCommand } from '../../src/cli/command/command.ts'

export default class KbChunk extends WbCommand {
  static override summary = 'preview the chunks of a file, without storing it'
  static override description =
    'Splits a file as an ingest would, and prints the chunks. With --compare, prints the chunks of several chunkers side by side. A chunker is the name of a chunking service or of a preset.'
  static override examples = [
    'wb kb chunk papers/flow.md',
    'wb kb chunk papers/flow.md --compare passages,structure',
    'wb kb chunk papers/flow.md --compare structure,structure-tokens-200 --json | jq ".previews[].chunkTotal"',
  ]
  static override args = {
    file: Args.string({ ignoreStdin: true, required: true, description: 'path of the file' }),
  }
  static override flags = {
    compare: Flags.string({
      summary: 'one to four chunkers, separated by commas [the oldest service in the workspace]',
      helpValue: 'NAMES',
    }),
    full: Flags.boolean({ summary: 'print the whole text of long chunks' }),
  }

  async run() {
    const { args, flags } = await this.parse(KbChunk)
    const { workspaceId } = await this.workspaceOrDefault()
    const names = (flags.compare ?? '').split(',').flatMap(name => name.trim() || [])
    const file = await readAttachment(args.file, this.io.cwd)
    const chunkers = await findChunkers(this.client, workspaceId, names)
    const preview = await this.waitFor('reading', previewChunks(this.client, { workspaceId, file, chunkers }))
    if (this.output.json) this.output.value(preview)
    else printChunks(this.output, { ...preview, isFull: flags.full })
  }
}
