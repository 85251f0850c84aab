import { citationSource } from '../../cli/chat/citation-source.ts'
import { modelSetupLines, passagesHeading } from '../../cli/chat/model-setup.ts'
import { summarizePassage } from '../../cli/chat/passage-summary.ts'
import { formatArguments } from '../../cli/chat/with-approvals.ts'
import { plain, plainLine } from '../../cli/terminal/terminal-text.ts'
import { renderBlock } from '../markdown/render.ts'
import { formatPreciseDuration } from '../parts/format-precise-duration.ts'
import { paintFor } from '../parts/paint.ts'
import { commands } from './commands.ts'
import { mainArgument } from './transcript.ts'
import type { ChatPanel, PendingApproval, TranscriptPart } from './types.ts'

const paint = paintFor(false)
/** Wide enough for a paragraph, because screen readers pause between lines. */
const LINE_CELLS_MAX = 100_000
const PASSAGE_CHARS_MAX = 400

/** Returns a part of the conversation as lines for a screen reader. */
export function screenReaderLines(printed: TranscriptPart, agent: string): string[] {
  switch (printed.kind) {
    case 'question':
      return [`You: ${plain(printed.text)}`, ...(printed.images ?? []).map(plainLine)]
    case 'answer': {
      const lines = renderBlock(printed.block, LINE_CELLS_MAX).map(line => paint(line).trimEnd())
      return printed.isFirst ? [`${plainLine(agent)}:`, ...lines] : lines
    }
    case 'tool': {
      const { call, result } = printed.run
      const argument = mainArgument(call.arguments)
      const outcome = result ? `, ${result.outcome}, ${formatPreciseDuration(result.durationMs)}` : ''
      return [
        `Tool ${printed.run.number}: ${plainLine(call.name)}${argument ? `, with “${argument}”` : ''}${outcome}`,
      ]
    }
    case 'sources':
      return [
        ...(printed.isUncited ? ['Passages used, without citations:'] : []),
        ...printed.citations.map(one => `Source ${one.number}: ${citationSource(one)}`),
      ]
    case 'passages':
      return [
        ...(printed.hasSetup ? modelSetupLines(agent) : []),
        passagesHeading,
        ...printed.passages.map(passage => {
          const { title, lines, location } = summarizePassage(passage, printed.question, PASSAGE_CHARS_MAX, 1)
          return `${passage.number}: ${title}. ${lines.join(' ')}${location && ` (${location})`}`
        }),
      ]
    case 'note':
      return [plain(printed.text)]
    case 'help':
      return commands.map(
        ({ name, argument, summary }) => `/${name}${argument ? ` ${argument}` : ''}: ${summary}`,
      )
  }
}

/** Returns a panel as lines for a screen reader. */
export function screenReaderPanel(panel: ChatPanel): string[] {
  if (panel.kind === 'text') return [plainLine(panel.title), ...plain(panel.page.text).split('\n')]
  return [
    `${panel.title}:`,
    ...panel.items.map(
      ({ name, description, isChosen }, at) =>
        `${at + 1}: ${plainLine(name)}${description ? `, ${plainLine(description)}` : ''}${isChosen ? ', chosen' : ''}`,
    ),
    panel.purpose === 'kb'
      ? 'Type the numbers, or press Enter to change nothing.'
      : 'Type the number, or press Enter to change nothing.',
  ]
}

/** Returns the approval prompt of a tool call as lines for a screen reader. */
export function screenReaderQuestion({ call }: PendingApproval, agent: string): string[] {
  return [
    `${plainLine(agent)} wants to use ${plainLine(call.name)} with ${plainLine(formatArguments(call.arguments))}`,
    'Type once, always or never.',
  ]
}
