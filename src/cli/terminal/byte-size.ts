const units = ['B', 'KB', 'MB', 'GB', 'TB'] as const

/** Formats a number of bytes in decimal units with up to three digits: 12 B, 1.2 KB, 24.5 MB. */
export function formatByteSize(bytes: number): string {
  let unit = 0
  let value = bytes
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1_000
    unit++
  }
  return `${unit === 0 || value >= 99.95 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}
