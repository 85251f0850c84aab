const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const frameMs = 100

/** The sign at a time that something goes on. */
export function spinnerAt(nowMs: number): string {
  return frames[Math.floor(nowMs / frameMs) % frames.length]!
}
