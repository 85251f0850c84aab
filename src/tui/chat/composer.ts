import { plainLine } from '../../cli/terminal/terminal-text.ts'
import { type FieldLayout, layoutField } from '../parts/text-field.tsx'
import { isEmptyChat } from './greeting.ts'
import type { ChatState } from './types.ts'

/** Lays out the field for the next message. */
export function layoutComposer(
  state: ChatState,
  options: { isFramed: boolean; linesMax: number },
): FieldLayout {
  const { search, replaces, editor } = state.input
  const title = search
    ? `search: ${search.query}`
    : replaces === undefined
      ? ''
      : 'replaces an earlier question'
  const hint = `ask ${plainLine(state.subject.agent)}, or type / for commands`
  const placeholder = !search && isEmptyChat(state) ? hint : ''
  return layoutField(editor, { ...options, columns: state.size.columns, title, placeholder })
}
