import { expect, test } from 'vitest'
import { chooseByName, typableNames } from '../../../src/tui/chat/choices.ts'
import { applyChoice } from '../../../src/tui/chat/panel.ts'
import type { ChoicePanel } from '../../../src/tui/chat/types.ts'
import { freshChat } from './play.ts'

function panel(
  purpose: 'model' | 'kb',
  names: readonly (readonly [name: string, alias?: string])[],
): ChoicePanel {
  const items = names.map(([name, alias], at) => ({
    id: `id-${at}`,
    name,
    ...(alias !== undefined && { alias }),
    description: '',
    isChosen: false,
  }))
  return { kind: 'choice', purpose, title: '', items, selectedIndex: 0 }
}

const models = panel('model', [
  ['llama3.2', 'local'],
  ['gpt-4o-mini', 'cheap'],
  ['gpt-4o-mini', 'dear'],
])
const bases = panel('kb', [['Handbook'], ['papers'], ['Laws, old']])

test.each([
  ['llama3.2', 0],
  ['LOCAL', 0],
  ['dear', 2],
  ['id-1', 1],
])('%s selects a model', (typed, at) => {
  expect(chooseByName(typed, models).selectedIndex).toBe(at)
})

test.each([
  ['handbook', ['Handbook']],
  ['papers, Handbook,', ['Handbook', 'papers']],
  ['Laws, old', ['Laws, old']],
  ['all', ['Handbook', 'papers', 'Laws, old']],
])('%s selects knowledge bases', (typed, names) => {
  const { items } = chooseByName(typed, bases)
  expect(items.filter(({ isChosen }) => isChosen).map(({ name }) => name)).toEqual(names)
})

test('selecting the only knowledge base by name does not select later ones', () => {
  const only = panel('kb', [['handbook']])
  const used = (typed: string) => applyChoice(freshChat, chooseByName(typed, only))[1]
  expect(used('handbook')).toMatchObject([{ knowledgeBases: [{ name: 'handbook' }] }])
  expect(used('all')).toMatchObject([{ knowledgeBases: [] }])
})

test.each([
  ['lama3.2', models, 'no model is named lama3.2; did you mean llama3.2?'],
  ['gpt-4o-mini', models, 'several items are named gpt-4o-mini: cheap, dear'],
  ['elsewhere', bases, 'no knowledge base is named elsewhere; choose from Handbook, papers, Laws, old'],
  ['papers, handbok', bases, 'no knowledge base is named handbok; did you mean Handbook?'],
  ['any', panel('model', []), 'no model is named any'],
])('%s selects nothing', (typed, list, message) => {
  expect(() => chooseByName(typed, list)).toThrow(message)
})

test('each choice has a distinct label that can be typed', () => {
  expect(typableNames(models)).toEqual(['llama3.2', 'cheap', 'dear'])
})
