import type { EvalSettings } from '../../evaluation/eval-result.ts'
import { UsageError } from '../errors.ts'
import { modeNames } from '../passages/ranking-options.ts'

const example = 'default, mode=lexical, lexical-weight=0.3, or rerank; combine them with commas'

/**
 * Parses settings that are typed as one argument: `default`, or flags of `wb kb search` without hyphens, separated by
 * commas, such as `lexical-weight=0.3,rerank`.
 *
 * @throws UsageError  a setting is unknown, or its value is invalid
 */
export function parseSettings(text: string): EvalSettings {
  if (text === 'default') return {}
  return Object.assign({}, ...text.split(',').map(parseSetting)) as EvalSettings
}

function parseSetting(text: string): EvalSettings {
  const [name, value, ...rest] = text.trim().split('=')
  if (rest.length === 0) {
    if (name === 'rerank' && value === undefined) return { rerank: true }
    const mode = name === 'mode' ? modeNames.find(known => known === value) : undefined
    if (mode) return { mode }
    const weight = Number(value?.trim() || Number.NaN)
    if (name === 'lexical-weight' && weight >= 0 && weight <= 1) return { lexicalWeight: weight }
  }
  throw new UsageError(`"${text}" is neither a setting nor a .json file with a result`, [
    `settings: ${example}`,
  ])
}

/** Formats settings as {@link parseSettings} accepts them. */
export function formatSettings({ mode, lexicalWeight, rerank }: EvalSettings): string {
  const texts = [
    ...(mode === undefined ? [] : [`mode=${mode}`]),
    ...(lexicalWeight === undefined ? [] : [`lexical-weight=${lexicalWeight}`]),
    ...(rerank ? ['rerank'] : []),
  ]
  return texts.join(',') || 'default'
}
