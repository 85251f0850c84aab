import { expect, test } from 'vitest'
import { type Editor, editorOf, emptyEditor } from '../../../src/tui/parts/editor.ts'
import { paintFor } from '../../../src/tui/parts/paint.ts'
import { type FieldOptions, layoutField } from '../../../src/tui/parts/text-field.tsx'

const paint = paintFor(false)
const framed: FieldOptions = { columns: 20, isFramed: true, title: '', placeholder: 'ask', linesMax: 2 }
const plain: FieldOptions = { ...framed, isFramed: false }
const at = (text: string, cursor: number): Editor => ({ ...editorOf(text), cursor })

function shown(editor: Editor, options: FieldOptions) {
  const { lines, height, cursor } = layoutField(editor, options)
  return { lines: lines.map(paint), height, cursor }
}

test.each([
  ['an empty framed field', emptyEditor, framed, ['ask'], 3, { x: 2, y: 1 }],
  ['text in a frame', editorOf('abc'), framed, ['abc'], 3, { x: 5, y: 1 }],
  ['wrapped text', editorOf('x'.repeat(17)), framed, ['x'.repeat(16), 'x'], 4, { x: 3, y: 2 }],
  ['a full line', editorOf('x'.repeat(16)), framed, ['x'.repeat(16), ''], 4, { x: 2, y: 2 }],
  ['the end of three lines', editorOf('a\nb\nc'), framed, ['b', 'c'], 4, { x: 3, y: 2 }],
  ['the start of three lines', at('a\nb\nc', 0), framed, ['a', 'b'], 4, { x: 2, y: 1 }],
  ['the middle of four lines', at('a\nb\nc\nd', 4), framed, ['b', 'c'], 4, { x: 2, y: 2 }],
  ['a field without a frame', editorOf('a\nb'), plain, ['> a', '  b'], 2, { x: 3, y: 1 }],
  ['a title', editorOf('a'), { ...plain, title: 'limit' }, ['limit: a'], 1, { x: 8, y: 0 }],
  ['a title that is too wide', editorOf('a'), { ...plain, title: 'knowledge' }, ['> a'], 1, { x: 3, y: 0 }],
  [
    'a long placeholder',
    emptyEditor,
    { ...plain, columns: 6, placeholder: 'type' },
    ['> type'],
    1,
    { x: 2, y: 0 },
  ],
  [
    'a cut placeholder',
    emptyEditor,
    { ...plain, columns: 5, placeholder: 'type' },
    ['> ty…'],
    1,
    { x: 2, y: 0 },
  ],
  ['one column', editorOf('ab'), { ...plain, columns: 1 }, ['> b', '  '], 2, { x: 0, y: 1 }],
] as const)('lays out %s', (_name, editor, options, lines, height, cursor) => {
  expect(shown(editor, options)).toEqual({ lines, height, cursor })
})
