/** Child process of `world:many` and `world:planted`: plays the stories it is sent, one after the other. */
import { plantedBug } from '../planted/bugs.ts'
import { simulate } from '../simulation.ts'
import { parseStory } from '../story.ts'

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
      const { violation, hash, events, calmMinutes } = await simulate(story, bug)
      process.send?.({ violation, hash, events, calmMinutes, cpuMs: cpuMs() })
    } catch (error) {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
      process.send?.({
        violation: { invariant: 'noUnexpectedError', text, atMs: 0 },
        hash: '',
        events: 0,
        calmMinutes: 0,
        cpuMs: cpuMs(),
      })
    }
  })()
})
