import type { ChatPort, ChoiceItem } from '../../cli/chat/port.ts'
import { UsageError } from '../../cli/errors.ts'
import { nearestMatch } from '../../cli/terminal/nearest-match.ts'
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
/** Word that chooses all items. */
const allWord = 'all'

/** Returns a list to choose from, with the current choice marked. */
export async function loadChoicePanel(
  port: ChatPort,
  purpose: ChoicePurpose,
  state: ChatState,
  search = '',
): Promise<ChoicePanel> {
  const items = await loadItems(port, purpose, state, search)
  const at =
    purpose === 'kb'
      ? 0
      : Math.max(
          0,
          items.findIndex(({ isChosen }) => isChosen),
        )
  return { kind: 'choice', purpose, title: titleOfPurpose[purpose], items, at }
}

async function loadItems(
  port: ChatPort,
  purpose: ChoicePurpose,
  { llmServiceId, last }: ChatState,
  search: string,
): Promise<readonly ChoiceItem[]> {
  if (purpose === 'kb') return port.knowledgeBases()
  if (purpose === 'history') return port.conversations(search)
  if (purpose === 'versions') return listAllVersions(port, last.question?.messageId)
  if (purpose === 'questions') return questionItems(await port.messages(), last.question?.messageId)
  const models = await port.models()
  return llmServiceId ? models.map(item => ({ ...item, isChosen: item.id === llmServiceId })) : models
}

/**
 * Returns the versions of all questions that have several, starting with the last question. If there are none, returns
 * the only version of the last question.
 */
async function listAllVersions(port: ChatPort, lastId: string | undefined): Promise<ChoiceItem[]> {
  const lastVersions = lastId === undefined ? [] : await port.versions(lastId)
  const earlier: ChoiceItem[] = []
  for (const messageId of questionsWithVersions(await port.messages(), lastId))
    earlier.push(...(await port.versions(messageId)))
  return lastVersions.length > 1 || earlier.length === 0 ? [...lastVersions, ...earlier] : earlier
}

/**
 * Returns the versions of the last question. If it has only one, returns the versions of the latest earlier question
 * that has several.
 */
export async function listLastVersions(port: ChatPort, lastId: string | undefined): Promise<ChoiceItem[]> {
  const lastVersions = lastId === undefined ? [] : await port.versions(lastId)
  if (lastVersions.length > 1) return lastVersions
  const [earlier] = questionsWithVersions(await port.messages(), lastId)
  return earlier === undefined ? lastVersions : port.versions(earlier)
}

/** Returns the IDs of questions with several versions, the last one first. */
function questionsWithVersions(messages: readonly Message[], lastId: string | undefined): string[] {
  return messages
    .filter(({ messageId, metadata }) => metadata.version_of !== undefined && messageId !== lastId)
    .map(({ messageId }) => messageId)
    .reverse()
}

function questionItems(messages: readonly Message[], lastId: string | undefined): ChoiceItem[] {
  return messages
    .filter(({ role }) => role === 'user')
    .map(({ messageId, content }, at) => ({
      id: messageId,
      name: `${at + 1}`,
      description: plainLine(content ?? ''),
      isChosen: messageId === lastId,
    }))
}

/** Returns the name to type for each item: the alias, if several items have the same name. */
export function typableNames({ items }: ChoicePanel): string[] {
  const isUnique = (name: string) => items.filter(item => item.name === name).length === 1
  return items.map(item => plainLine(isUnique(item.name) ? item.name : (item.alias ?? item.name)))
}

/**
 * Chooses items by their names, separated by commas.
 *
 * @throws UsageError  a name matches no item, or several
 */
export function chooseByName(typed: string, panel: ChoicePanel): ChoicePanel {
  const { items, purpose } = panel
  if (purpose !== 'kb') return { ...panel, at: items.indexOf(findByName(typed, panel)) }
  const isAll = typed.toLowerCase() === allWord && !items.some(({ name }) => name.toLowerCase() === allWord)
  const names = items.some(({ name }) => name === typed) ? [typed] : typed.split(',').map(name => name.trim())
  const chosen = isAll ? items : names.filter(name => name !== '').map(name => findByName(name, panel))
  const marked = items.map(item => ({ ...item, isChosen: chosen.includes(item) }))
  return { ...panel, items: marked, isNamed: !isAll }
}

function findByName(typed: string, panel: ChoicePanel): ChoiceItem {
  const { items } = panel
  const kind = nounOfPurpose[panel.purpose as NamedPurpose]
  const matching = (same: (name: string) => boolean) =>
    items.filter(({ id, name, alias }) => [id, name, alias ?? ''].some(same))
  const exact = matching(name => name === typed)
  const matches = exact.length > 0 ? exact : matching(name => name.toLowerCase() === typed.toLowerCase())
  if (matches.length === 1) return matches[0]!
  const names = typableNames({ ...panel, items: matches.length > 0 ? matches : items })
  if (matches.length > 1) throw new UsageError(`several items are named ${typed}: ${names.join(', ')}`)
  const suggestion = nearestMatch(typed, names)
  const hint = suggestion
    ? `; did you mean ${suggestion}?`
    : names.length > 0
      ? `; there are ${names.join(', ')}`
      : ''
  throw new UsageError(`no ${kind} is named ${typed}${hint}`)
}
