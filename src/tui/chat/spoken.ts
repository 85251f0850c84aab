import { pretty } from '../../cli/chat/approve.ts'
import { foundCard } from '../../cli/chat/found.ts'
import { foundNotWritten, modelSetupLines } from '../../cli/chat/no-model.ts'
import { sourceOf } from '../../cli/chat/sources.ts'
import { plain, plainLine } from '../../cli/terminal/terminal-text.ts'
import { renderBlock } from '../markdown/render.ts'
import { paintFor } from '../parts/paint.ts'
import { commands } from './commands.ts'
import { lasted } from './lasted.ts'
import { gistOf } from './shown.ts'
import type { Panel, Pending, Printed } from './types.ts'

const paint = paintFor(false)
/** A paragraph is a line. */
const width = 100_000
/** Of a passage as much is read out. */
const passageChars = 400

/** What stays on the screen, as lines that are read out. */
export function spokenLines(printed: Printed, agent: string): string[] {
  switch (printed.kind) {
    case 'you':
      return [`You: ${plain(printed.text)}`, ...(printed.images ?? []).map(plainLine)]
    case 'said': {
      const lines = renderBlock(printed.block, width).map(line => paint(line).trimEnd())
      return printed.isFirst ? [`${plainLine(agent)}:`, ...lines] : lines
    }
    case 'tool': {
      const { call, result } = printed.run
      const asked = gistOf(call.arguments)
      const how = result ? `, ${result.outcome}, ${lasted(result.durationMs)}` : ''
      return [`Tool ${printed.run.number}: ${plainLine(call.name)}${asked ? `, asked “${asked}”` : ''}${how}`]
    }
    case 'sources':
      return printed.citations.map(one => `Source ${one.number}: ${sourceOf(one)}`)
    case 'found':
      return [
        ...(printed.hasWays ? modelSetupLines(agent) : []),
        foundNotWritten,
        ...printed.passages.map(passage => {
          const { title, lines, place } = foundCard(passage, printed.question, passageChars, 1)
          return `${passage.number}: ${title}. ${lines.join(' ')}${place && ` (${place})`}`
        }),
      ]
    case 'note':
      return [plain(printed.text)]
    case 'help':
      return commands.map(({ name, takes, does }) => `/${name}${takes ? ` ${takes}` : ''}: ${does}`)
  }
}

/** What would fill the screen. */
export function spokenPanel(panel: Panel): string[] {
  if (panel.kind === 'text') return [plainLine(panel.title), ...plain(panel.page.text).split('\n')]
  return [
    `${panel.title}:`,
    ...panel.items.map(
      ({ name, about, isChosen }, at) =>
        `${at + 1}: ${plainLine(name)}${about ? `, ${plainLine(about)}` : ''}${isChosen ? ', chosen' : ''}`,
    ),
    panel.purpose === 'kb'
      ? 'Type the numbers, or nothing to leave it.'
      : 'Type the number, or nothing to leave it.',
  ]
}

/** What a tool would do, and what may be answered. */
export function spokenQuestion({ call }: Pending, agent: string): string[] {
  return [
    `${plainLine(agent)} wants to use ${plainLine(call.name)} with ${plainLine(pretty(call.arguments))}`,
    'Type once, always or never.',
  ]
}
