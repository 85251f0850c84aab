import { plainLine } from '../../cli/terminal/terminal-text.ts'
import { type Highlight, renderText } from '../markdown/render.ts'
import type { Key } from '../parts/keys.ts'
import { type Line, span, wrapExact } from '../parts/spans.ts'
import type { Size } from '../parts/terminal-session.ts'
import { editQuestion, startOver } from './commands.ts'
import type { ChatPanel, ChatState, ChatStep, ChoicePanel, PanelPage } from './types.ts'

/** Number of screen rows around the body: the title, the keys, two gaps, and the last row, which Ink needs. */
const FRAME_ROWS = 5

/** Caches the rendered lines of each page, because scrolling draws a page again for each line. */
const pageCache = new WeakMap<
  PanelPage,
  { columns: number; highlight: Highlight | undefined; lines: readonly Line[] }
>()

/** Returns the lines of a page. */
export function pageLines(page: PanelPage, columns: number, highlight?: Highlight): readonly Line[] {
  const cached = pageCache.get(page)
  if (cached?.columns === columns && cached.highlight === highlight) return cached.lines
  const lines = renderPage(page, Math.max(1, columns - 4), highlight)
  pageCache.set(page, { columns, highlight, lines })
  return lines
}

function renderPage({ text, format }: PanelPage, width: number, highlight: Highlight | undefined): Line[] {
  if (format === 'markdown') return renderText(text, width, highlight)
  return text.split('\n').flatMap(line => wrapExact([span(line.replaceAll('\t', '  '))], width))
}

const chunkSeparator = '\n\n* * *\n\n'

/** Returns a panel with a passage and the text around it, scrolled to the passage. */
export function passagePanel(
  { title, before, passage, after }: { title: string; before: string; passage: string; after: string },
  size: Size,
): ChatPanel {
  const text = [before, passage, after].filter(part => part !== '').join(chunkSeparator)
  const page = { text, format: 'markdown' } as const
  if (before === '') return { kind: 'text', title, page, top: 0 }
  const above = pageLines({ ...page, text: before }, size.columns).length
  return { kind: 'text', title, page, top: Math.min(above + 1, topMax(page, size)) }
}

/** Returns the maximum scroll position, at which the last line is visible. */
function topMax(page: PanelPage, size: Size): number {
  const cached = pageCache.get(page)
  // Highlighting does not change how lines wrap.
  const lines = cached?.columns === size.columns ? cached.lines : pageLines(page, size.columns)
  return Math.max(0, lines.length - panelBodyRows(size))
}

/** Returns the number of lines that are visible at once. */
export function panelBodyRows({ rows }: Size): number {
  return Math.max(1, rows - FRAME_ROWS)
}

/** Handles a key in a panel. */
export function pressPanelKey(state: ChatState, panel: ChatPanel, key: Key): ChatStep {
  const isLetter = (letter: string) => key.type === 'typed' && key.text === letter
  if (key.type === 'escape' || key.type === 'cancel' || isLetter('q'))
    return [{ ...state, panel: undefined }, []]
  const rows = rowsMovedBy(key, panelBodyRows(state.size))
  if (panel.kind === 'text') {
    if (key.type === 'enter') return [{ ...state, panel: undefined }, []]
    if (rows === undefined) return [state, []]
    const top = Math.max(0, Math.min(topMax(panel.page, state.size), panel.top + rows))
    return [{ ...state, panel: { ...panel, top } }, []]
  }
  if (rows !== undefined && panel.items.length > 0) {
    const selectedIndex = Math.max(0, Math.min(panel.items.length - 1, panel.selectedIndex + rows))
    return [{ ...state, panel: { ...panel, selectedIndex } }, []]
  }
  if (panel.purpose === 'kb' && isLetter(' ')) {
    const items = panel.items.map((item, index) =>
      index === panel.selectedIndex ? { ...item, isChosen: !item.isChosen } : item,
    )
    return [{ ...state, panel: { ...panel, items } }, []]
  }
  return key.type === 'enter' ? applyChoice({ ...state, panel: undefined }, panel) : [state, []]
}

function rowsMovedBy(key: Key, pageRows: number): number | undefined {
  switch (key.type) {
    case 'up':
      return -1
    case 'down':
      return 1
    case 'pageUp':
      return -pageRows
    case 'pageDown':
      return pageRows
    case 'home':
      return Number.NEGATIVE_INFINITY
    case 'end':
      return Number.POSITIVE_INFINITY
    case 'typed':
      return key.text === 'k' ? -1 : key.text === 'j' ? 1 : undefined
    default:
      return undefined
  }
}

/** Applies a choice that was typed as item numbers, from 1. Without a number, only closes the panel. */
export function chooseByNumber(state: ChatState, panel: ChoicePanel, input: string): ChatStep {
  const closed: ChatState = { ...state, panel: undefined }
  const indexes = [...input.matchAll(/\d+/g)].map(([number]) => Number(number) - 1)
  if (indexes.length === 0) return [closed, []]
  const items =
    panel.purpose === 'kb'
      ? panel.items.map((item, index) => ({ ...item, isChosen: indexes.includes(index) }))
      : panel.items
  return applyChoice(closed, { ...panel, items, selectedIndex: indexes[0]! })
}

/** Applies the choice of a list. */
export function applyChoice(
  state: ChatState,
  { purpose, items, selectedIndex, isNamed }: ChoicePanel,
): ChatStep {
  const item = items[selectedIndex]
  if (!item) return [state, []]
  if (purpose === 'model') {
    const notice = `${plainLine(item.name)} answers from now on`
    return [{ ...state, llmServiceId: item.id, model: item.name, notice }, []]
  }
  if (purpose === 'history') {
    const [newState] = startOver(state)
    return [newState, [{ type: 'openConversation', conversation: item }]]
  }
  if (purpose === 'questions') {
    const { question } = state.lastExchange
    if (question?.messageId === item.id) return editQuestion(state, question)
    return [state, [{ type: 'loadQuestion', messageId: item.id }]]
  }
  if (purpose === 'versions') return [state, item.isChosen ? [] : [{ type: 'useVersion', version: item }]]
  const chosenItems = items.filter(({ isChosen }) => isChosen)
  return [
    state,
    [
      {
        type: 'useKnowledgeBases',
        knowledgeBases: !isNamed && chosenItems.length === items.length ? [] : chosenItems,
      },
    ],
  ]
}
