import { Box, Text } from 'ink'
import { displayWidth, pad } from '../../cli/terminal/terminal-text.ts'
import type { Highlight } from '../markdown/render.ts'
import { Rows } from '../parts/rows.tsx'
import { cutLine, type Line, span } from '../parts/spans.ts'
import type { Size } from '../parts/terminal-session.ts'
import { pageLines, panelBodyRows } from './panel.ts'
import type { ChatPanel, ChoicePanel } from './types.ts'

interface PanelProps {
  readonly panel: ChatPanel
  readonly size: Size
  readonly highlight: Highlight | undefined
}

/** A panel, one row shorter than the screen, because Ink needs the last row. */
export function PanelScreen({ panel, size, highlight }: PanelProps) {
  const bodyRows = panelBodyRows(size)
  const body =
    panel.kind === 'text' ? pageLines(panel.page, size.columns, highlight) : choiceLines(panel, size)
  const top =
    panel.kind === 'text'
      ? panel.top
      : Math.max(0, Math.min(panel.selectedIndex - bodyRows + 1, body.length - bodyRows))
  const visibleLines = body
    .slice(top, top + bodyRows)
    .map((line): Line => cutLine([span('  '), ...line], size.columns))
  const progress =
    body.length > bodyRows ? `${Math.min(top + bodyRows, body.length)} of ${body.length} lines` : ''
  return (
    <Box flexDirection="column" width={size.columns} height={Math.max(1, size.rows - 1)} overflow="hidden">
      <Box paddingLeft={2} flexShrink={0}>
        <Text bold wrap="truncate">
          {panel.title}
        </Text>
      </Box>
      <Box flexDirection="column" marginTop={1} marginBottom={1} height={bodyRows} flexShrink={0}>
        <Rows lines={visibleLines} />
      </Box>
      <Box paddingLeft={2} paddingRight={2} justifyContent="space-between" flexShrink={0}>
        <Text dimColor wrap="truncate">
          {keyHints(panel, size.columns - displayWidth(progress) - 6)}
        </Text>
        <Text dimColor>{progress}</Text>
      </Box>
    </Box>
  )
}

/** Returns the longest description of the keys that fits. */
function keyHints(panel: ChatPanel, width: number): string {
  const back = 'q goes back'
  const hints =
    panel.kind === 'text'
      ? [`up, down, page up, page down   ${back}`]
      : panel.purpose === 'kb'
        ? [`space selects   enter applies   ${back}`, 'space selects, enter applies, q back']
        : [`enter selects   ${back}`]
  return hints.find(hint => displayWidth(hint) <= width) ?? (hints[1] || back)
}

function choiceLines({ items, selectedIndex, purpose }: ChoicePanel, { columns }: Size): Line[] {
  if (items.length === 0) return [[span('none', 'dim')]]
  const widest = Math.max(...items.map(({ name }) => displayWidth(name)))
  const nameWidth = Math.min(widest, Math.max(12, Math.floor(columns / 2)))
  return items.map(({ name, description, isChosen }, row): Line => {
    const isSelected = row === selectedIndex
    const mark = purpose === 'kb' ? (isChosen ? '☑ ' : '☐ ') : isChosen ? '• ' : '  '
    return [
      span(isSelected ? '› ' : '  ', 'accent'),
      span(mark, isChosen ? 'good' : 'dim'),
      ...cutLine([span(pad(name, nameWidth), ...(isSelected ? (['strong'] as const) : []))], nameWidth),
      span(`  ${description}`, 'dim'),
    ]
  })
}
