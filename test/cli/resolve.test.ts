import { expect, test } from 'vitest'
import { pickResource } from '../../src/cli/find/resolve.ts'

const twins = ['1', '2'].map(id => ({ row: id, id, name: 'english' }))

test.each([
  ['LLM service', '2 LLM services'],
  ['knowledge base in workspace demo', '2 knowledge bases in workspace demo'],
  ['saved filter of handbook', '2 saved filters of handbook'],
])('counts several resources of one name: %s', async (one, several) => {
  const kind = { noun: one, notFoundCode: 'not_found', listCommand: 'wb list', createCommands: [] } as const
  await expect(pickResource(twins, 'english', kind, undefined)).rejects.toThrow(
    `${several} are named "english"`,
  )
  await expect(pickResource(twins, undefined, kind, undefined)).rejects.toThrow(
    `there are ${several}; specify one`,
  )
})

test('distinguishes resources with the same name by their IDs, in a list and in a prompt', async () => {
  const all = [...twins, { row: 'c', id: 'c', name: 'german' }]
  const kind = {
    noun: 'knowledge base',
    notFoundCode: 'not_found',
    listCommand: 'wb list',
    createCommands: [],
  } as const
  const selectCommand = (word: string) => `--kb ${word}`
  await expect(pickResource(all, undefined, { ...kind, selectCommand }, undefined)).rejects.toMatchObject({
    next: [...twins.map(({ id }) => `--kb ${id}`), '--kb german'],
  })
  const offered: string[] = []
  const chosen = await pickResource(all, undefined, kind, async (_question, choices) => {
    offered.push(...choices.map(({ name }) => name))
    return choices[1]!.id
  })
  expect(offered).toEqual([...twins.map(({ id }) => `english  ${id}`), 'german'])
  expect(chosen).toBe(twins[1]!.row)
})
