import type { Clock } from '../../base/clock.ts'

/** Time between two frames for changes that are not caused by a key: about 30 frames per second. */
const FRAME_MS = 33

/** Limits how often a screen is drawn. Typed text is drawn immediately, and other changes with the next frame. */
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
