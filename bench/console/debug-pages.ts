/** How long requests of the debug pages block the controller. */
import { type Figure, heldTarget, type Stand } from './figure.ts'

const paths = ['decisions', 'prices', 'offerings', 'catalogue', 'journal', 'drains', 'waiting', 'snapshot']
const times = 3

export async function debugPages({
  clock,
  controller,
  controllerUrl: url,
}: Stand): Promise<readonly Figure[]> {
  const figures: Figure[] = []
  for (const path of paths) {
    // The first request warms up the code.
    await read(`${url}/debug/${path}`)
    await clock.sleep(1000)
    await controller.longestHoldMs()
    let bytes = 0
    const startMs = clock.monotonic()
    for (let time = 0; time < times; time++) bytes = await read(`${url}/debug/${path}`)
    const tookMs = (clock.monotonic() - startMs) / times
    const value = await controller.longestHoldMs()
    figures.push(
      { name: `/debug/${path} held ms`, value, target: heldTarget },
      { name: `/debug/${path} ms`, value: tookMs },
      { name: `/debug/${path} kB`, value: bytes / 1000 },
    )
  }
  return figures
}

async function read(url: string): Promise<number> {
  const answer = await fetch(url)
  if (answer.status !== 200) throw new Error(`${url}: ${answer.status}`)
  let bytes = 0
  for await (const chunk of answer.body as AsyncIterable<Uint8Array>) bytes += chunk.length
  return bytes
}
