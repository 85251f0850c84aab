import { nearestMatch } from '../../base/nearest-match.ts'
import type { ChatPort, ChoiceItem } from '../../cli/chat/port.ts'
import { UsageError } from '../../cli/errors.ts'
import { plainLine } from '../../cli/terminal/terminal-text.ts'
import type { Message } from '../../contract/conversations.ts'
import type { ChatState, ChoicePanel, ChoicePurpose, NamedPurpose } from './types.ts'

const titleOfPurpose: Record<ChoicePurpose, string> = {
  model: 'Models',
  kb: 'Knowledge bases',
  history: 'Conversations',
  versions: 'Versions of questions',
  questions: 'Questions to edit and ask again',
}
const nounOfPurpose: Record<NamedPurpose, string> = { model: 'model', kb: 'knowledge base' }
/** Input that chooses all items. */
const allWord = 'all'

/** Returns a list to choose from, with the current choice marked. */
export async function loadChoicePanel(
  port: ChatPort,
  purpose: ChoicePurpose,
  state: ChatState,
  search = '',
): Promise<ChoicePanel> {
  const items = await loadItems(port, purpose, state, search)
  const selectedIndex =
    purpose === 'kb'
      ? 0
      : Math.max(
          0,
          items.findIndex(({ isChosen }) => isChosen),
        )
  return { kind: 'choice', purpose, title: titleOfPurpose[purpose], items, selectedIndex }
}

async function loadItems(
  port: ChatPort,
  purpose: ChoicePurpose,
  { llmServiceId, lastExchange }: ChatState,
  search: string,
): Promise<readonly ChoiceItem[]> {
  if (purpose === 'kb') return port.knowledgeBases()
  if (purpose === 'history') return port.conversations(search)
  if (purpose === 'versions') return listAllVersions(port, lastExchange.question?.messageId)
  if (purpose === 'questions') return questionItems(await port.messages(), lastExchange.question?.messageId)
  const models = await port.models()
  return llmServiceId ? models.map(item => ({ ...item, isChosen: item.id === llmServiceId })) : models
}

/**
 * Returns the versions of all questions that have several, starting with the last question. If there are none, returns
 * the only version of the last question.
 */
async function listAllVersions(port: ChatPort, lastId: string | undefined): Promise<ChoiceItem[]> {
  const lastVersions = lastId === undefined ? [] : await port.versions(lastId)
  const earlierVersions: ChoiceItem[] = []
  for (const messageId of questionsWithVersions(await port.messages(), lastId))
    earlierVersions.push(...(await port.versions(messageId)))
  return lastVersions.length > 1 || earlierVersions.length === 0
    ? [...lastVersions, ...earlierVersions]
    : earlierVersions
}

/**
 * Returns the versions of the last question. If it has only one, returns the versions of the latest earlier question
 * that has several.
 */
export async function listLatestVersions(port: ChatPort, lastId: string | undefined): Promise<ChoiceItem[]> {
  const lastVersions = lastId === undefined ? [] : await port.versions(lastId)
  if (lastVersions.length > 1) return lastVersions
  const [questionId] = questionsWithVersions(await port.messages(), lastId)
  return questionId === undefined ? lastVersions : port.versions(questionId)
}

/** Returns the IDs of the questions that have several versions, newest first, except the question `lastId`. */
function questionsWithVersions(messages: readonly Message[], lastId: string | undefined): string[] {
  return messages
    .filter(({ messageId, metadata }) => metadata.version_of !== undefined && messageId !== lastId)
    .map(({ messageId }) => messageId)
    .reverse()
}

function questionItems(messages: readonly Message[], lastId: string | undefined): ChoiceItem[] {
  return messages
    .filter(({ role }) => role === 'user')
    .map(({ messageId, content }, index) => ({
      id: messageId,
      name: `${index + 1}`,
      description: plainLine(content ?? ''),
      isChosen: messageId === lastId,
    }))
}

/** Returns what to type to choose each item: its name, or its alias if several items have this name. */
export function typableNames({ items }: ChoicePanel): string[] {
  const isUnique = (name: string) => items.filter(item => item.name === name).length === 1
  return items.map(item => plainLine(isUnique(item.name) ? item.name : (item.alias ?? item.name)))
}

/**
 * Chooses items by their names, separated by commas.
 *
 * @throws UsageError  a name matches no item, or several
 */
export function chooseByName(input: string, panel: ChoicePanel): ChoicePanel {
  const { items, purpose } = panel
  if (purpose !== 'kb') return { ...panel, selectedIndex: items.indexOf(findByName(input, panel)) }
  const isAll = input.toLowerCase() === allWord && !items.some(({ name }) => name.toLowerCase() === allWord)
  const names = items.some(({ name }) => name === input) ? [input] : input.split(',').map(name => name.trim())
  const chosenItems = isAll ? items : names.filter(name => name !== '').map(name => findByName(name, panel))
  const updatedItems = items.map(item => ({ ...item, isChosen: chosenItems.includes(item) }))
  return { ...panel, items: updatedItems, isNamed: !isAll }
}

function findByName(input: string, panel: ChoicePanel): ChoiceItem {
  const { items } = panel
  const noun = nounOfPurpose[panel.purpose as NamedPurpose]
  const matching = (predicate: (name: string) => boolean) =>
    items.filter(({ id, name, alias }) => [id, name, alias ?? ''].some(predicate))
  const exact = matching(name => name === input)
  const matches = exact.length > 0 ? exact : matching(name => name.toLowerCase() === input.toLowerCase())
  if (matches.length === 1) return matches[0]!
  const names = typableNames({ ...panel, items: matches.length > 0 ? matches : items })
  if (matches.length > 1) throw new UsageError(`several items are named ${input}: ${names.join(', ')}`)
  const suggestion = nearestMatch(input, names)
  const hint = suggestion
    ? `; did you mean ${suggestion}?`
    : names.length > 0
      ? `; choose from ${names.join(', ')}`
      : ''
  throw new UsageError(`no ${noun} is named ${input}${hint}`)
}
