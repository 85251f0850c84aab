/** Formats a metric: .812. */
export function formatMetric(value: number): string {
  return value.toFixed(3).replace(/^(-?)0\./, '$1.')
}

/** Formats the ends of a confidence interval: .790 to .834. */
export function formatInterval({ low, high }: { readonly low: number; readonly high: number }): string {
  return `${formatMetric(low)} to ${formatMetric(high)}`
}

/** Formats a difference with its sign: +.012. */
export function formatDifference(value: number): string {
  const text = formatMetric(value)
  return value > 0 ? `+${text}` : text
}

/** Formats a p value: .031, or <.001. */
export function formatP(p: number): string {
  return p < 0.001 ? '<.001' : formatMetric(p)
}
