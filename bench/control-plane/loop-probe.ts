/** Loaded into the controller before its own code: answers how long its event loop was held. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

const resolutionMs = 10

/** What the parent says: to begin or to end looking, or that it wants to know. */
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
  // The parent's questions alone must not keep the controller from ending.
  process.channel?.unref()
}
