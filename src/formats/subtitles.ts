import { type FileText, tidy } from './file-text.ts'

const cueTime = /^\s*(?:(\d+):)?(\d{1,2}):(\d{2})[.,]\d{3}\s+-->/

/** Silence in seconds after which a new paragraph begins. */
const pauseSeconds = 5

/** Returns the spoken text of subtitles (SRT or WebVTT) in paragraphs, each with the time at which it begins. */
export function readSubtitles(text: string): FileText {
  const paragraphs: { start: number; lines: string[] }[] = []
  let last = Number.NEGATIVE_INFINITY
  for (const cue of text.replace(/\r\n?/g, '\n').split(/\n{2,}/)) {
    const lines = cue.split('\n')
    const at = lines.findIndex(line => cueTime.test(line))
    if (at < 0) continue
    const [, hours = 0, minutes, seconds] = cueTime.exec(lines[at]!)!
    const start = Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds)
    const spoken = lines
      .slice(at + 1)
      .map(line => line.replace(/<[^>]{0,200}>/g, '').trim())
      .filter(Boolean)
    if (start - last > pauseSeconds || paragraphs.length === 0) paragraphs.push({ start, lines: [] })
    paragraphs.at(-1)!.lines.push(...spoken)
    last = start
  }
  return {
    text: tidy(paragraphs.map(({ start, lines }) => `[${clockTime(start)}] ${lines.join(' ')}`).join('\n\n')),
    title: null,
  }
}

function clockTime(seconds: number): string {
  const parts = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60]
  return parts.map(part => String(part).padStart(2, '0')).join(':')
}
