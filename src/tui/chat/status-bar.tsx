import { Box, Text } from 'ink'
import { formatCount } from '../../cli/terminal/output.ts'
import { displayWidth, plainLine } from '../../cli/terminal/terminal-text.ts'
import type { ChatState } from './types.ts'

const NAMED_BASES_MAX = 2

/**
 * Shows facts about the conversation on the left, and keys on the right. On narrow screens, omits the most obvious
 * facts first.
 */
export function StatusBar({ state }: { state: ChatState }) {
  const { facts, keys } = layoutStatus(state)
  return (
    <Box paddingLeft={2} paddingRight={1} justifyContent="space-between">
      <Text dimColor wrap="truncate">
        {facts === '' ? ' ' : facts}
      </Text>
      <Text dimColor>{keys}</Text>
    </Box>
  )
}

function layoutStatus(state: ChatState): { facts: string; keys: string } {
  const { subject, spent, context, size, model: modelName } = state
  const model = modelName === null ? 'no model' : (modelName ?? '')
  const tokens = spent.tokens > 0 ? `${formatCount(spent.tokens)} tokens` : ''
  const share = context ? `ctx ${Math.min(100, Math.ceil((100 * context.tokens) / context.window))}%` : ''
  const cost = spent.costUsd === undefined ? '' : `$${spent.costUsd.toFixed(spent.costUsd < 0.1 ? 4 : 2)}`
  const bases = describeBases(subject.knowledgeBases)
  const isBusy = state.turn !== undefined || state.fileTask !== undefined
  const keys = keyHints(state)
  const choices = [
    [[subject.agent, bases, model, tokens, share, cost], keys],
    [[subject.agent, bases, model, tokens, share, cost], isBusy ? 'ctrl+c stops' : '/help'],
    ...(isBusy ? ([[[tokens, share], 'ctrl+c stops']] as const) : []),
    [[bases, model, tokens, share, cost], ''],
    [[model, tokens, share, cost], ''],
    [[tokens, share, cost], ''],
    [[share, cost], ''],
  ] as const
  for (const [texts, keys] of choices) {
    const facts = texts.filter(text => text !== '').join(' · ')
    if (displayWidth(facts) + displayWidth(keys) + 3 + (keys === '' ? 0 : 2) <= size.columns)
      return { facts, keys }
  }
  return { facts: '', keys: '' }
}

function keyHints({ turn, fileTask, last }: ChatState): string {
  if (turn || fileTask !== undefined) return turn ? 'enter queues  ctrl+c stops' : 'ctrl+c stops'
  return last.citations.length > 0 ? '/help  alt+1 opens a source' : '/help'
}

function describeBases(names: readonly string[]): string {
  if (names.length === 0) return 'all knowledge bases'
  return names.length > NAMED_BASES_MAX ? `${names.length} knowledge bases` : plainLine(names.join(', '))
}
