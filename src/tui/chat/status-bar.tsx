import { Box, Text } from 'ink'
import { formatCount } from '../../cli/terminal/output.ts'
import { displayWidth, plainLine } from '../../cli/terminal/terminal-text.ts'
import type { ChatState } from './types.ts'

const NAMED_BASES_MAX = 2

/**
 * Shows facts about the conversation on the left, and keys on the right. On narrow screens, first omits the facts that
 * the user most likely knows.
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
  const { subject, usage, context, size, model: modelName } = state
  const model = modelName === null ? 'no model' : (modelName ?? '')
  const tokens = usage.tokens > 0 ? `${formatCount(usage.tokens)} tokens` : ''
  const contextShare = context
    ? `ctx ${Math.min(100, Math.ceil((100 * context.tokens) / context.window))}%`
    : ''
  const cost = usage.costUsd === undefined ? '' : `$${usage.costUsd.toFixed(usage.costUsd < 0.1 ? 4 : 2)}`
  const knowledgeBases = summarizeBases(subject.knowledgeBases)
  const isBusy = state.turn !== undefined || state.fileTask !== undefined
  const keys = keyHints(state)
  const stopHint = isBusy ? 'ctrl+c stops' : ''
  const layouts = [
    [[subject.agent, knowledgeBases, model, tokens, contextShare, cost], keys],
    [[subject.agent, knowledgeBases, model, tokens, contextShare, cost], isBusy ? 'ctrl+c stops' : '/help'],
    [[knowledgeBases, model, tokens, contextShare, cost], stopHint],
    [[model, tokens, contextShare, cost], stopHint],
    [[tokens, contextShare, cost], stopHint],
    [[contextShare, cost], stopHint],
    [[], stopHint],
  ] as const
  for (const [texts, keys] of layouts) {
    const facts = texts.filter(text => text !== '').join(' · ')
    if (displayWidth(facts) + displayWidth(keys) + 3 + (keys === '' ? 0 : 2) <= size.columns)
      return { facts, keys }
  }
  return { facts: '', keys: '' }
}

function keyHints({ turn, fileTask, lastExchange }: ChatState): string {
  if (turn || fileTask !== undefined) return turn ? 'enter queues  ctrl+c stops' : 'ctrl+c stops'
  return lastExchange.citations.length > 0 ? '/help  alt+1 opens a source' : '/help'
}

function summarizeBases(names: readonly string[]): string {
  if (names.length === 0) return 'all knowledge bases'
  return names.length > NAMED_BASES_MAX ? `${names.length} knowledge bases` : plainLine(names.join(', '))
}
