import { citationSource } from '../../cli/chat/citation-source.ts'
import { modelSetupLines, passagesHeading } from '../../cli/chat/model-setup.ts'
import { summarizePassage } from '../../cli/chat/passage-summary.ts'
import { unsupportedList } from '../../cli/chat/unsupported.ts'
import { formatArguments } from '../../cli/chat/with-approvals.ts'
import { plain, plainLine } from '../../cli/terminal/terminal-text.ts'
import { plainMarkdown, renderBlock } from '../markdown/render.ts'
import { formatPreciseDuration } from '../parts/format-precise-duration.ts'
import { paintFor } from '../parts/paint.ts'
import { commands } from './commands.ts'
import { mainArgument } from './transcript.ts'
import type { ChatPanel, PendingApproval, TranscriptPart } from './types.ts'

const paint = paintFor(false)
/** Maximum width of a line. It fits a whole paragraph, because screen readers pause between lines. */
const LINE_CELLS_MAX = 100_000
const PASSAGE_CHARS_MAX = 400

/** Returns a part of the conversation as lines for a screen reader. */
export function screenReaderLines(part: TranscriptPart, agent: string): string[] {
  switch (part.kind) {
    case 'question':
      return [`You: ${plain(part.text)}`, ...(part.images ?? []).map(plainLine)]
    case 'answer': {
      const lines = renderBlock(part.block, LINE_CELLS_MAX).map(line => paint(line).trimEnd())
      return part.isFirst ? [`${plainLine(agent)}:`, ...lines] : lines
    }
    case 'tool': {
      const { call, result } = part.run
      const argument = mainArgument(call.arguments)
      const outcome = result ? `, ${result.outcome}, ${formatPreciseDuration(result.durationMs)}` : ''
      return [
        `Tool ${part.run.number}: ${plainLine(call.name)}${argument ? `, with “${argument}”` : ''}${outcome}`,
      ]
    }
    case 'sources':
      return [
        ...(part.isUncited ? ['Passages used but not cited:'] : []),
        ...part.citations.map(citation => `Source ${citation.number}: ${citationSource(citation)}`),
      ]
    case 'unsupported':
      return unsupportedLines(part.sentences)
    case 'passages':
      return [
        ...(part.hasSetup ? modelSetupLines(agent) : []),
        passagesHeading,
        ...part.passages.map(passage => {
          const { title, lines, location } = summarizePassage(passage, part.question, PASSAGE_CHARS_MAX, 1)
          return `${passage.number}: ${title}. ${lines.join(' ')}${location && ` (${location})`}`
        }),
      ]
    case 'note':
      return [plain(part.text)]
    case 'help':
      return commands.map(
        ({ name, argument, summary }) => `/${name}${argument ? ` ${argument}` : ''}: ${summary}`,
      )
  }
}

function unsupportedLines(sentences: readonly string[]): string[] {
  const { heading, items } = unsupportedList(sentences)
  return [heading, ...items.map((item, index) => `${index + 1}: ${plainMarkdown(item)}`)]
}

/** Returns a panel as lines for a screen reader. */
export function screenReaderPanel(panel: ChatPanel): string[] {
  if (panel.kind === 'text') return [plainLine(panel.title), ...plain(panel.page.text).split('\n')]
  return [
    `${panel.title}:`,
    ...panel.items.map(
      ({ name, description, isChosen }, index) =>
        `${index + 1}: ${plainLine(name)}${description ? `, ${plainLine(description)}` : ''}${isChosen ? ', chosen' : ''}`,
    ),
    panel.purpose === 'kb'
      ? 'Type the numbers, or press Enter to change nothing.'
      : 'Type the number, or press Enter to change nothing.',
  ]
}

/** Returns the approval prompt of a tool call as lines for a screen reader. */
export function screenReaderApproval({ call }: PendingApproval, agent: string): string[] {
  return [
    `${plainLine(agent)} wants to use ${plainLine(call.name)} with ${plainLine(formatArguments(call.arguments))}`,
    'Type a choice: “once”, “always” or “never”.',
  ]
}
