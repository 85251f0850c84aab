import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { exportBase } from '../../src/cli/archive/export-base.ts'
import { knowledgeBaseChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { UsageError } from '../../src/cli/errors.ts'
import { formatByteSize } from '../../src/cli/terminal/byte-size.ts'
import { formatCounted } from '../../src/cli/terminal/output.ts'

export default class KbExport extends WbCommand {
  static override summary = 'write a knowledge base to a file'
  static override description =
    'The file contains the settings, documents, chunks, vectors and access lists, but no secrets. wb kb import needs no request to an embedding service to read it. It contains only what you may see. If the command is interrupted, run it again to continue.'
  static override examples = [
    'wb kb export handbook handbook.wbkb',
    'wb kb export handbook handbook.wbkb --all --force',
  ]
  static override args = {
    name: existingArg(knowledgeBaseChoices, 'name or ID'),
    file: Args.string({ required: true, description: 'file to write' }),
  }
  static override flags = {
    all: Flags.boolean({ summary: 'also export what you may not see; needs manage:access' }),
    force: Flags.boolean({ summary: 'replace FILE if it exists' }),
  }

  async run() {
    const { args, flags } = await this.parse(KbExport)
    const path = resolve(this.io.cwd, args.file)
    if (existsSync(path) && !flags.force)
      throw new UsageError(`${args.file} exists`, ['add --force to replace it'])
    const base = await this.knowledgeBase(args.name)
    const { client, signal, progress, output } = this
    const onProgress = (bytes: number) => progress.spin(`exporting, ${formatByteSize(bytes)}`)
    const exported = await exportBase({ client, base, path, all: flags.all ?? false, signal, onProgress })
    progress.end()
    const { documents, records: chunks, isResumed } = exported
    const value = { file: path, knowledgeBaseId: base.knowledgeBaseId, documents, chunks, isResumed }
    const contents = `${formatCounted(documents, 'document')} and ${formatCounted(chunks, 'chunk')}`
    output.reportSaved(value, path, `exported ${base.name} to ${path}: ${contents}`)
  }
}
