import type { Client } from '../../client/client.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { isErrorCode, WbError } from '../../contract/errors.ts'
import { type CompactionProgress, type KnowledgeBaseCompaction, kb } from '../../contract/knowledge.ts'
import { formatByteSize } from '../terminal/byte-size.ts'
import { formatCounted, type Output } from '../terminal/output.ts'
import type { Progress } from '../terminal/progress.ts'

const partLabels: Record<CompactionProgress['part'], string> = {
  index: 'rewriting the index',
  file: 'shrinking the file',
}

/** Compacts a knowledge base, and shows the progress. */
export async function compactBase(
  client: Client,
  params: { workspaceId: string; knowledgeBaseId: string },
  progress: Progress,
): Promise<KnowledgeBaseCompaction> {
  progress.spin('compacting')
  try {
    for await (const { event, data } of client.events(kb.compact, { params })) {
      if (event === 'done') return data as KnowledgeBaseCompaction
      if (event === 'error') throw toError(data as { code: string; message: string })
      const { part, done, total } = data as CompactionProgress
      progress.step({ label: partLabels[part], done, total, unit: 'bytes' })
    }
  } finally {
    progress.end()
  }
  throw new Unreachable('the runtime ended the response early', 'Run the command again to continue.')
}

function toError({ code, message }: { code: string; message: string }): WbError {
  return new WbError(isErrorCode(code) ? code : 'internal_error', message)
}

/** Prints the sizes before and after a compaction: a table in a terminal, tab-separated numbers in a pipe. */
export function printCompaction(output: Output, name: string, compaction: KnowledgeBaseCompaction): void {
  if (output.json) {
    output.value(compaction)
    return
  }
  const { before, after } = compaction
  const rows = (['index', 'file'] as const).flatMap(part => {
    const [old, current] = [before[part], after[part]]
    return old && current ? [{ part, before: old.bytes, after: current.bytes }] : []
  })
  const size = (bytes: number) => (output.interactive ? formatByteSize(bytes) : bytes)
  const columns = {
    part: { value: (row: (typeof rows)[number]) => row.part },
    before: { value: (row: (typeof rows)[number]) => size(row.before), format: 'count' },
    after: { value: (row: (typeof rows)[number]) => size(row.after), format: 'count' },
    freed: {
      value: (row: (typeof rows)[number]) => size(Math.max(0, row.before - row.after)),
      format: 'count',
    },
  } as const
  output.note(`  ✓ compacted ${name}`)
  output.list(rows, { columns, empty: ['the runtime reports no sizes'] })
  if (before.index && after.index && before.index.segments !== after.index.segments)
    output.note(
      `  the index has ${formatCounted(after.index.segments, 'segment')}; before, it had ${before.index.segments}`,
    )
  if (after.file && !after.file.canShrink && after.file.freeBytes > 0)
    output.note(
      `  ${formatByteSize(after.file.freeBytes)} of the file is free, and will be used for new content. The file cannot shrink, because an earlier version created it; see "Free space" in docs/storage.md`,
    )
}
