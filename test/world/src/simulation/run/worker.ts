/** Child process of `world:many` and `world:planted`: runs the stories it receives. */
import { plantedBug } from '../planted/bugs.ts'
import { type Moment, simulate } from '../simulation.ts'
import { parseStory } from '../story.ts'
import { brokenOff, type ChildMessage, type Verdict } from './crew.ts'

const pauseMs = 1000

const send = (message: ChildMessage<Moment, Verdict>): void => {
  process.send?.(message)
}

/** Sends the first moment of a run, then one per second. */
function momentSender(): (moment: Moment) => void {
  let sentMs = Number.NEGATIVE_INFINITY
  return (moment) => {
    const now = performance.now()
    if (now - sentMs < pauseMs) return
    sentMs = now
    send({ kind: 'moment', moment })
  }
}

process.on('message', (message) => {
  void (async () => {
    const story = parseStory(message)
    const bug = story.mutation === undefined ? undefined : plantedBug(story.mutation)
    const before = process.cpuUsage()
    const cpuMs = (): number => {
      const { user, system } = process.cpuUsage(before)
      return (user + system) / 1000
    }
    try {
      const { violation, hash, events, calmMinutes } = await simulate(story, bug, momentSender())
      send({
        kind: 'verdict',
        verdict: { ...(violation && { violation }), hash, events, calmMinutes, cpuMs: cpuMs() },
      })
    } catch (error) {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
      send({ kind: 'verdict', verdict: brokenOff(text, cpuMs()) })
    }
  })()
})
