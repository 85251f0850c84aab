/** A line with a value. */
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** A metric with its samples; for a histogram, its buckets, sum and count. */
export interface Family {
  readonly name: string
  readonly type: string
  readonly help: string
  readonly samples: Sample[]
}

const types = ['counter', 'gauge', 'histogram', 'summary', 'untyped']
const metricName = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const commentLine = new RegExp(`^# (HELP|TYPE) (${metricName}) (.+)$`)
const sampleLine = new RegExp(`^(${metricName})(?:\\{(.*)\\})? (\\S+)$`)
const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y
/** Case-insensitive like Prometheus: the event loop lag is `Nan` without a sample since the last scrape. */
const numeral = /^(?:[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]inf|nan)$/i

/**
 * Parses the text format of Prometheus, version 0.0.4, and rejects what a scraper rejects.
 *
 * @throws Error  the invalid line
 * @see https://prometheus.io/docs/instrumenting/exposition_formats/
 */
export function parseExposition(text: string): Map<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the last line does not end')
  const families = new Map<string, Family>()
  const seen = new Set<string>()
  let help: { name: string; text: string } | undefined
  let current: Family | undefined
  for (const line of text.split('\n').filter(Boolean)) {
    const [, keyword, name, rest] = commentLine.exec(line) ?? []
    if (keyword === 'HELP') help = { name: name!, text: rest! }
    else if (keyword === 'TYPE') {
      if (families.has(name!) || !types.includes(rest!) || help?.name !== name) throw new Error(line)
      current = { name: name!, type: rest!, help: help!.text, samples: [] }
      families.set(name!, current)
    } else if (!line.startsWith('#')) {
      const sample = sampleOf(line)
      const series = JSON.stringify([sample.name, Object.entries(sample.labels).sort()])
      if (!current || !belongs(sample, current) || seen.has(series)) throw new Error(line)
      seen.add(series)
      current.samples.push(sample)
    }
  }
  for (const family of families.values()) if (family.type === 'histogram') checkHistogram(family)
  return families
}

function sampleOf(line: string): Sample {
  const [, name, labels = '', value] = sampleLine.exec(line) ?? []
  if (!name || !numeral.test(value!)) throw new Error(line)
  return { name, labels: labelsOf(labels, line), value: numberOf(value!) }
}

function labelsOf(text: string, line: string): Record<string, string> {
  const labels: Record<string, string> = {}
  label.lastIndex = 0
  while (label.lastIndex < text.length) {
    const [, name, value] = label.exec(text) ?? []
    if (name === undefined || name in labels) throw new Error(line)
    labels[name] = value!.replace(/\\(.)/g, (_, escaped) => (escaped === 'n' ? '\n' : escaped))
  }
  return labels
}

function numberOf(text: string): number {
  return Number(text.replace(/inf/i, 'Infinity'))
}

function belongs({ name, labels }: Sample, family: Family): boolean {
  if (family.type !== 'histogram') return name === family.name
  const part = name.slice(family.name.length)
  return (
    name.startsWith(family.name) && (part === '_bucket' ? 'le' in labels : ['_sum', '_count'].includes(part))
  )
}

/** Checks that the buckets of a series increase up to `+Inf`, which equals its count. */
function checkHistogram({ name, samples }: Family): void {
  const bySeries = new Map<string, Sample[]>()
  for (const sample of samples) {
    const { le: _, ...labels } = sample.labels
    const series = JSON.stringify(labels)
    bySeries.set(series, [...(bySeries.get(series) ?? []), sample])
  }
  for (const [series, parts] of bySeries) {
    const of = (part: string) => parts.filter(sample => sample.name === `${name}${part}`)
    const buckets = of('_bucket').map(({ labels, value }) => ({ bound: numberOf(labels.le!), value }))
    const rises = buckets.every(
      ({ bound, value }, at) =>
        at === 0 || (bound > buckets[at - 1]!.bound && value >= buckets[at - 1]!.value),
    )
    const [last, counts, sums] = [buckets.at(-1), of('_count'), of('_sum')]
    if (!rises || last?.bound !== Number.POSITIVE_INFINITY || counts.length !== 1 || sums.length !== 1)
      throw new Error(`${name} ${series}`)
    if (last.value !== counts[0]!.value) throw new Error(`${name} ${series}`)
  }
}
