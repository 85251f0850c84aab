import type { ChatPort, Choice } from '../../cli/chat/port.ts'
import { UsageError } from '../../cli/errors.ts'
import { nearestMatch } from '../../cli/terminal/nearest.ts'
import { plainLine } from '../../cli/terminal/terminal-text.ts'
import type { Message } from '../../contract/conversations.ts'
import type { ChatState, ChoicePanel, Named, Purpose } from './types.ts'

const titles: Record<Purpose, string> = {
  model: 'Models',
  kb: 'Knowledge bases',
  history: 'Conversations',
  versions: 'Versions of the questions',
  questions: 'Questions to edit and ask again',
}
const kinds: Record<Named, string> = { model: 'model', kb: 'knowledge base' }
/** Chooses everything. */
const all = 'all'

/** Returns a list to choose from, with the current choice marked. */
export async function choicesOf(
  port: ChatPort,
  purpose: Purpose,
  state: ChatState,
  search = '',
): Promise<ChoicePanel> {
  const items = await itemsOf(port, purpose, state, search)
  const at =
    purpose === 'kb'
      ? 0
      : Math.max(
          0,
          items.findIndex(({ isChosen }) => isChosen),
        )
  return { kind: 'choice', purpose, title: titles[purpose], items, at }
}

async function itemsOf(
  port: ChatPort,
  purpose: Purpose,
  { llmServiceId, last }: ChatState,
  search: string,
): Promise<readonly Choice[]> {
  if (purpose === 'kb') return port.knowledgeBases()
  if (purpose === 'history') return port.conversations(search)
  if (purpose === 'versions') return allVersions(port, last.question?.messageId)
  if (purpose === 'questions') return questionsOf(await port.said(), last.question?.messageId)
  const models = await port.models()
  return llmServiceId ? models.map(item => ({ ...item, isChosen: item.id === llmServiceId })) : models
}

/** Returns the versions of all questions that have several, the last question first. If none has, those of the last one. */
async function allVersions(port: ChatPort, lastId: string | undefined): Promise<Choice[]> {
  const own = lastId === undefined ? [] : await port.versions(lastId)
  const earlier: Choice[] = []
  for (const messageId of earlierWithVersions(await port.said(), lastId))
    earlier.push(...(await port.versions(messageId)))
  return own.length > 1 || earlier.length === 0 ? [...own, ...earlier] : earlier
}

/**
 * Returns the versions of the last question. If it has only one, returns those of the last question before it that has
 * several.
 */
export async function lastVersions(port: ChatPort, lastId: string | undefined): Promise<Choice[]> {
  const own = lastId === undefined ? [] : await port.versions(lastId)
  if (own.length > 1) return own
  const [earlier] = earlierWithVersions(await port.said(), lastId)
  return earlier === undefined ? own : port.versions(earlier)
}

/** Returns the IDs of questions with several versions, the last one first. */
function earlierWithVersions(said: readonly Message[], lastId: string | undefined): string[] {
  return said
    .filter(({ messageId, metadata }) => metadata.version_of !== undefined && messageId !== lastId)
    .map(({ messageId }) => messageId)
    .reverse()
}

function questionsOf(said: readonly Message[], lastId: string | undefined): Choice[] {
  return said
    .filter(({ role }) => role === 'user')
    .map(({ messageId, content }, at) => ({
      id: messageId,
      name: `${at + 1}`,
      about: plainLine(content ?? ''),
      isChosen: messageId === lastId,
    }))
}

/** Returns a name to type for each item. */
export function namesOf({ items }: ChoicePanel): string[] {
  const isOne = (name: string) => items.filter(item => item.name === name).length === 1
  return items.map(item => plainLine(isOne(item.name) ? item.name : (item.alias ?? item.name)))
}

/**
 * Chooses items by their names, separated by commas.
 *
 * @throws UsageError  a name fits no item, or several
 */
export function chosenBy(typed: string, panel: ChoicePanel): ChoicePanel {
  const { items, purpose } = panel
  if (purpose !== 'kb') return { ...panel, at: items.indexOf(named(typed, panel)) }
  const isAll = typed.toLowerCase() === all && !items.some(({ name }) => name.toLowerCase() === all)
  const names = items.some(({ name }) => name === typed) ? [typed] : typed.split(',').map(name => name.trim())
  const chosen = isAll ? items : names.filter(name => name !== '').map(name => named(name, panel))
  const marked = items.map(item => ({ ...item, isChosen: chosen.includes(item) }))
  return { ...panel, items: marked, isNamed: !isAll }
}

function named(typed: string, panel: ChoicePanel): Choice {
  const { items } = panel
  const kind = kinds[panel.purpose as Named]
  const fits = (same: (name: string) => boolean) =>
    items.filter(({ id, name, alias }) => [id, name, alias ?? ''].some(same))
  const exact = fits(name => name === typed)
  const found = exact.length > 0 ? exact : fits(name => name.toLowerCase() === typed.toLowerCase())
  if (found.length === 1) return found[0]!
  const names = namesOf({ ...panel, items: found.length > 0 ? found : items })
  if (found.length > 1) throw new UsageError(`several are named ${typed}: ${names.join(', ')}`)
  const meant = nearestMatch(typed, names)
  const hint = meant ? `; did you mean ${meant}?` : names.length > 0 ? `; there are ${names.join(', ')}` : ''
  throw new UsageError(`no ${kind} is named ${typed}${hint}`)
}
