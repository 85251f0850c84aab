const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 100

/** Returns the frame of a spinner to show at a point in time. */
export function spinnerAt(nowMs: number): string {
  return frames[Math.floor(nowMs / FRAME_MS) % frames.length]!
}
