import type { ServerContext } from './context.ts'

/** Events are kept for an hour after their last change. */
const eventLifetimeMs = 60 * 60_000
const sweepIntervalMs = 60_000

/**
 * Removes old events as time passes.
 * @returns a function that stops this.
 */
export function expireEvents(ctx: ServerContext): () => void {
  const events = ctx.store.collection('events')
  const lastSeen = new Map<string, number>()
  let cancel = () => {}
  let armed = false
  const arm = () => {
    if (armed || lastSeen.size === 0) return
    armed = true
    cancel = ctx.clock.after(sweepIntervalMs, () => {
      armed = false
      sweep()
      arm()
    })
  }
  const sweep = () => {
    const oldest = ctx.clock.now() - eventLifetimeMs
    // Keys are in the order of their last change, so old ones come first.
    for (const [key, at] of lastSeen) {
      if (at > oldest) break
      ctx.store.remove(events, key)
    }
  }
  events.scan({}, (_event, key) => {
    lastSeen.set(key, ctx.clock.now())
    return true
  })
  const stop = ctx.store.onCommit((collection, { type, key, atMs }) => {
    if (collection !== events) return
    lastSeen.delete(key)
    if (type !== 'DELETED') lastSeen.set(key, atMs)
    arm()
  })
  arm()
  return () => {
    stop()
    cancel()
  }
}
