/** Preloaded into a server: writes its event-loop delay to a file on each SIGUSR2. */
import { writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

const path = process.env.LOOP_DELAY_FILE
if (isMainThread && path) {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  process.on('SIGUSR2', () => {
    const ms = nanoseconds => nanoseconds / 1e6
    const { max } = delay
    writeFileSync(
      path,
      JSON.stringify({
        p50: ms(delay.percentile(50)),
        p99: ms(delay.percentile(99)),
        p999: ms(delay.percentile(99.9)),
        max: ms(max),
      }),
    )
    delay.reset()
  })
}
