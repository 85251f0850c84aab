import { plainLine } from '../../cli/terminal/terminal-text.ts'
import { type Highlight, renderText } from '../markdown/render.ts'
import type { Key } from '../parts/keys.ts'
import type { Size } from '../parts/screen.ts'
import { type Line, span, wrapExact } from '../parts/spans.ts'
import { begin, editQuestion } from './commands.ts'
import type { ChoicePanel, Page, Panel, State, Step } from './types.ts'

/** Lines of the screen beside the text: the title with its distance, and the keys. */
const frameLines = 4

/** What a page was rendered to last: it is scrolled line by line. */
const known = new WeakMap<
  Page,
  { columns: number; highlight: Highlight | undefined; lines: readonly Line[] }
>()

/** Lines of a text that fills the screen. */
export function pageLines(page: Page, columns: number, highlight?: Highlight): readonly Line[] {
  const before = known.get(page)
  if (before?.columns === columns && before.highlight === highlight) return before.lines
  const lines = rendered(page, Math.max(1, columns - 4), highlight)
  known.set(page, { columns, highlight, lines })
  return lines
}

function rendered({ text, format }: Page, width: number, highlight: Highlight | undefined): Line[] {
  if (format === 'markdown') return renderText(text, width, highlight)
  return text.split('\n').flatMap(line => wrapExact([span(line.replaceAll('\t', '  '))], width))
}

const between = '\n\n* * *\n\n'

/** A passage with what stands around it; the screen begins with the passage itself. */
export function panelFrom(
  { title, before, said, behind }: { title: string; before: string; said: string; behind: string },
  size: Size,
): Panel {
  const text = [before, said, behind].filter(part => part !== '').join(between)
  const page = { text, format: 'markdown' } as const
  if (before === '') return { kind: 'text', title, page, top: 0 }
  const above = pageLines({ ...page, text: before }, size.columns).length
  return { kind: 'text', title, page, top: Math.min(above + 1, lastTop(page, size)) }
}

/** The line at the top of the screen that has the end at its bottom. */
function lastTop(page: Page, size: Size): number {
  const before = known.get(page)
  // Colours change no line's end.
  const lines = before?.columns === size.columns ? before.lines : pageLines(page, size.columns)
  return Math.max(0, lines.length - panelRoom(size))
}

/** Lines of the text or of the list that are seen at once. */
export function panelRoom({ rows }: Size): number {
  return Math.max(1, rows - frameLines)
}

/** A key while something fills the screen. */
export function read(state: State, panel: Panel, key: Key): Step {
  const isLetter = (letter: string) => key.type === 'typed' && key.text === letter
  if (key.type === 'escape' || key.type === 'cancel' || isLetter('q'))
    return [{ ...state, panel: undefined }, []]
  const by = movedBy(key, panelRoom(state.size))
  if (panel.kind === 'text') {
    if (key.type === 'enter') return [{ ...state, panel: undefined }, []]
    if (by === undefined) return [state, []]
    const top = Math.max(0, Math.min(lastTop(panel.page, state.size), panel.top + by))
    return [{ ...state, panel: { ...panel, top } }, []]
  }
  if (by !== undefined && panel.items.length > 0) {
    const at = Math.max(0, Math.min(panel.items.length - 1, panel.at + by))
    return [{ ...state, panel: { ...panel, at } }, []]
  }
  if (panel.purpose === 'kb' && isLetter(' ')) {
    const items = panel.items.map((item, at) =>
      at === panel.at ? { ...item, isChosen: !item.isChosen } : item,
    )
    return [{ ...state, panel: { ...panel, items } }, []]
  }
  return key.type === 'enter' ? chosen({ ...state, panel: undefined }, panel) : [state, []]
}

function movedBy(key: Key, page: number): number | undefined {
  switch (key.type) {
    case 'up':
      return -1
    case 'down':
      return 1
    case 'pageUp':
      return -page
    case 'pageDown':
      return page
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

/** The same by numbers from 1, for who sees no list; none leaves it as it is. */
export function choose(state: State, panel: ChoicePanel, typed: string): Step {
  const closed: State = { ...state, panel: undefined }
  const places = [...typed.matchAll(/\d+/g)].map(([number]) => Number(number) - 1)
  if (places.length === 0) return [closed, []]
  const items =
    panel.purpose === 'kb'
      ? panel.items.map((item, at) => ({ ...item, isChosen: places.includes(at) }))
      : panel.items
  return chosen(closed, { ...panel, items, at: places[0]! })
}

/** What was chosen holds from now on. */
export function chosen(state: State, { purpose, items, at, isNamed }: ChoicePanel): Step {
  const item = items[at]
  if (!item) return [state, []]
  if (purpose === 'model') {
    const notice = `${plainLine(item.name)} answers from now on`
    return [{ ...state, llmServiceId: item.id, model: item.name, notice }, []]
  }
  if (purpose === 'history') {
    const [fresh] = begin(state)
    return [fresh, [{ type: 'goOn', conversation: item }]]
  }
  if (purpose === 'questions') {
    const { question } = state.last
    if (question?.messageId === item.id) return editQuestion(state, question)
    return [state, [{ type: 'loadQuestion', messageId: item.id }]]
  }
  if (purpose === 'versions') return [state, item.isChosen ? [] : [{ type: 'useVersion', version: item }]]
  const marked = items.filter(({ isChosen }) => isChosen)
  return [
    state,
    [{ type: 'useKnowledgeBases', chosen: !isNamed && marked.length === items.length ? [] : marked }],
  ]
}
