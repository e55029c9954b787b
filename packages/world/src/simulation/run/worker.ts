/** Child process of `world:many` and `world:planted`: plays the stories it is sent, one after the other. */
import { plantedBug } from '../planted/bugs.ts'
import { simulate } from '../simulation.ts'
import { parseStory } from '../story.ts'

process.on('message', (message) => {
  void (async () => {
    const story = parseStory(message)
    const bug = story.mutation === undefined ? undefined : plantedBug(story.mutation)
    try {
      const { violation, hash, events, calmMinutes } = await simulate(story, bug)
      process.send?.({ violation, hash, events, calmMinutes })
    } catch (error) {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
      process.send?.({
        violation: { invariant: 'noUnexpectedError', text, atMs: 0 },
        hash: '',
        events: 0,
        calmMinutes: 0,
      })
    }
  })()
})
