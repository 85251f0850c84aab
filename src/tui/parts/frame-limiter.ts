import type { Clock } from '../../base/clock.ts'

/** Delay of `drawNextFrame`, which results in at most about 30 frames per second. */
const FRAME_MS = 33

/** Limits how often a screen is drawn. Call `drawNow` for typed text, and `drawNextFrame` for other changes. */
export class FrameLimiter {
  #isDue = false

  constructor(
    private readonly clock: Clock,
    private readonly draw: () => void,
  ) {}

  drawNow(): void {
    this.#isDue = false
    this.draw()
  }

  drawNextFrame(): void {
    if (this.#isDue) return
    this.#isDue = true
    this.clock.after(FRAME_MS, () => {
      if (this.#isDue) this.drawNow()
    })
  }
}
