import type { Clock } from '../../base/clock.ts'

/** Milliseconds between two frames of changes that no key caused: about 30 frames a second. */
const FRAME_MS = 33

/** Limits how often a screen is drawn. What a person types is drawn at once, and other changes with the next frame. */
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
