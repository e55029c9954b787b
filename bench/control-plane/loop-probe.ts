/** Preloaded into the controller: measures how long its event loop is blocked. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

const resolutionMs = 10

/** Messages of the parent: start or stop measuring, or report. */
export type ProbeOrder = { readonly kind: 'watch'; readonly isOn: boolean } | { readonly kind: 'longestHold' }

if (isMainThread) {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs })
  delay.enable()
  process.on('message', (order: ProbeOrder) => {
    if (order.kind === 'watch') {
      if (order.isOn) delay.enable()
      else delay.disable()
      return
    }
    process.send?.(Math.max(0, delay.max / 1e6 - resolutionMs))
    delay.reset()
  })
  // The channel must not keep the controller alive.
  process.channel?.unref()
}
